import { closeSync, openSync, readSync, type Stats } from 'node:fs';
import { lstat, mkdir, open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StoreError } from '../../../monitor/errors.ts';
import { isSystemError } from '../errors.ts';
import { APPLICATION_ID, assertNotNewer } from '../sql/migrate.ts';
import { isOpenHere } from './open-files.ts';
import { SUFFIXES } from './own-files.ts';

const JOURNAL_MAGIC = 'd9d505f920a163d7';

/**
 * Returns the real path of the store, which need not exist yet. Resolves symlinks, so that every path to a file leads to one
 * lock. Creates missing directories, for the owner alone.
 * @throws {StoreError} if the path is a link to nothing: whoever made it would choose where a file is created
 */
export async function prepareRealPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
  }
  await makeDirectory(dirname(path), path);
  const entry = join(await realpath(dirname(path)), basename(path));
  if ((await statOf(entry, lstat)) === undefined) return entry;
  throw new StoreError(
    'other',
    `${path} is a symbolic link to a file that does not exist: create that file, empty, or set store.path to its path`,
  );
}

/**
 * Creates a directory and its missing parents. Does not use `mkdir` with `recursive`, which never ends below /proc: there the
 * system answers ENOENT although the parent exists.
 */
async function makeDirectory(path: string, store: string): Promise<void> {
  if (await tryDirectory(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectory(parent, store);
  if (await tryDirectory(path)) return;
  throw new StoreError(
    'io',
    `the directory ${path} for the store ${store} cannot be created (ENOENT): create it, or set store.path to another file`,
  );
}

/** Creates a directory unless it exists. False if `mkdir` answers that its parent is missing. */
async function tryDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return true;
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}

/** Creates an empty file that only its owner may read. Does not open or change an existing file. */
export async function createPrivately(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
  }
}

/** Returns the size of a file in bytes, 0 if it does not exist. */
export async function fileSize(path: string): Promise<number> {
  return (await statOf(path))?.size ?? 0;
}

async function statOf(path: string, read = stat): Promise<Stats | undefined> {
  try {
    return await read(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Returns whether a store of evalwatch is at this real path. Reads only the first bytes, before SQLite opens the file, so that
 * a refused file does not change.
 * @throws {StoreError} if the file is something else, or a store of a newer version
 */
export async function inspectStoreFile(path: string): Promise<'absent' | 'store'> {
  if (path !== path.trim()) {
    throw new StoreError('other', `the store's path begins or ends in white space: "${path}"`);
  }
  await assertFilesBeside(path);
  const stats = await statOf(path);
  if (stats === undefined) return 'absent';
  if (!stats.isFile()) throw foreign(path, 'is not a file');
  if (stats.size === 0) return 'absent';
  const walSize = await fileSize(`${path}-wal`);
  const header = readHeader(path);
  if (header === undefined) return 'store';
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    if (await wasNewWhenCut(path, header)) return 'absent';
    throw foreign(path, 'is not an SQLite database, or a damaged one', 'corrupt');
  }
  const applicationId = header.readUInt32BE(68);
  if (applicationId === APPLICATION_ID) {
    assertNotNewer(header.readUInt32BE(60), path);
    // SQLite reads the missing end of the last page as zeros. An interrupted checkpoint or rollback leaves such an end, too.
    const isCutShort = stats.size % header.readUInt16BE(16) !== 0;
    if (isCutShort && walSize === 0 && (await fileSize(`${path}-journal`)) === 0) {
      throw foreign(path, 'is a store that was cut short, restore a backup', 'corrupt');
    }
    return 'store';
  }
  // A store has its application id before it has a write-ahead log.
  const schemaChanges = header.readUInt32BE(40);
  if (applicationId === 0 && schemaChanges === 0 && walSize === 0) return 'absent';
  throw foreign(path, 'is the database of another program');
}

/**
 * Rejects links and devices in the place of the files that SQLite and the daemon write beside a store: they would write to
 * what is behind them. A lock file with content may have several names, as snapshots by hard links make them: it is recognised.
 */
async function assertFilesBeside(store: string): Promise<void> {
  for (const suffix of SUFFIXES) {
    const path = store + suffix;
    const stats = await statOf(path, lstat);
    if (stats === undefined) continue;
    if (stats.isSymbolicLink()) throw foreign(path, 'is a symbolic link');
    if (!stats.isFile()) throw foreign(path, 'is not a file');
    const isNewLock = suffix === '.lock' && stats.size === 0;
    if (isNewLock && stats.nlink > 1) throw foreign(path, 'has several names (hard links)');
  }
}

/**
 * Whether the power failed while a new store was written for the first time. Its rollback journal then says that the file
 * was empty before, and SQLite restores that.
 */
async function wasNewWhenCut(path: string, header: Buffer): Promise<boolean> {
  if (header.some((byte) => byte !== 0)) return false;
  const journal = await readStart(`${path}-journal`, 28);
  return journal.toString('hex', 0, 8) === JOURNAL_MAGIC && journal.readUInt32BE(16) === 0;
}

async function readStart(path: string, length: number): Promise<Buffer> {
  const start = Buffer.alloc(length);
  try {
    await using file = await open(path, 'r');
    await file.read(start, 0, length, 0);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
  }
  return start;
}

/**
 * Reads the first 100 bytes of an SQLite file. Undefined for a file that this process has open and so has inspected before:
 * closing any descriptor of it would release SQLite's locks. Synchronous, so that it is not opened in between.
 */
function readHeader(path: string): Buffer | undefined {
  if (isOpenHere(path)) return undefined;
  const descriptor = openSync(path, 'r');
  try {
    const header = Buffer.alloc(100);
    readSync(descriptor, header, 0, header.length, 0);
    return header;
  } finally {
    closeSync(descriptor);
  }
}

/** An error about a file that is not what evalwatch makes. */
export function foreign(
  path: string,
  what: string,
  reason: 'corrupt' | 'other' = 'other',
): StoreError {
  return new StoreError(
    reason,
    `${path} ${what}; it was left as it is: move it away, or set store.path to another file`,
  );
}

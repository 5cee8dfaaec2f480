import { statSync, type Stats } from 'node:fs';
import { lstat, mkdir, open, realpath, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { StoreError } from '../../monitor/errors.ts';
import { connect, type Connection } from './connection.ts';
import { isSqliteError, isSystemError } from './errors.ts';
import { APPLICATION_ID, assertNotNewer, schemaVersion } from './sql/migrate.ts';

/** Time for which a daemon waits, blocking, for another process, ms. */
export const BUSY_TIMEOUT_MS = 250;
/** Size to which the write-ahead log shrinks after a large commit. */
const MAX_WAL_BYTES = 16 * 1024 * 1024;

/**
 * Returns the real path of the store, which need not exist yet. Resolves symlinks, so that every path to a file leads to one
 * lock. Creates missing directories, for the owner alone.
 * @throws {StoreError} if the path is a link to nothing
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

/** Creates a directory and its missing parents. `mkdir` with `recursive` would never end below /proc. */
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

/** Creates a directory unless it exists. False if the system says that its parent is missing. */
async function tryDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    if (!isSystemError(error, 'EEXIST')) throw error;
  }
  return true;
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
 * a refused file does not change. This process must not have it open: closing the file releases SQLite's locks.
 * @throws {StoreError} if the file is something else, or a store of a newer version
 */
export async function inspectStoreFile(path: string): Promise<'absent' | 'store'> {
  // The driver would open another file.
  if (path !== path.trim()) {
    throw new StoreError('other', `the store's path begins or ends in white space: "${path}"`);
  }
  const stats = await statOf(path);
  if (stats === undefined) return 'absent';
  if (!stats.isFile()) throw foreign(path, 'is not a file');
  if (stats.size === 0) return 'absent';
  // SQLite undoes an interrupted transaction when it opens the file.
  if ((await fileSize(`${path}-journal`)) > 0) return 'store';
  const header = Buffer.alloc(100);
  await using file = await open(path, 'r');
  await file.read(header, 0, header.length, 0);
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw foreign(path, 'is not an SQLite database, or a damaged one', 'corrupt');
  }
  if (header.readUInt32BE(68) !== APPLICATION_ID) {
    throw foreign(path, 'is the database of another program');
  }
  assertNotNewer(header.readUInt32BE(60), path);
  return 'store';
}

/** @throws {StoreError} for the open database of another program, or of a newer version of this one */
export function assertOwn(db: Connection, path: string): void {
  const isOwn = db.pragma('application_id', { simple: true }) === APPLICATION_ID;
  if (!isOwn && db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined) {
    throw foreign(path, 'is the database of another program');
  }
  assertNotNewer(schemaVersion(db), path);
}

/** An error about a file that is not what evalwatch makes. */
function foreign(path: string, what: string, reason: 'corrupt' | 'other' = 'other'): StoreError {
  return new StoreError(
    reason,
    `${path} ${what}; it was left as it is: move it away, or set store.path to another file`,
  );
}

interface Holder {
  readonly host: string;
  readonly pid: number;
}

/**
 * Locks the store for one daemon (docs/specification.md#one-daemon): a write transaction stays open on a second SQLite file,
 * and the kernel ends it with the process. Other processes read the holder from that file. Resolves to the function that
 * releases the lock.
 * @throws {StoreError} `busy`, naming the holder
 */
export async function takeLock(storePath: string): Promise<() => void> {
  const path = `${storePath}.lock`;
  await createPrivately(path);
  const db = connect(path, { readonly: false, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    hold(db);
    return () => void db.close();
  } catch (error) {
    const refusal = explain(error, db, storePath);
    db.close();
    throw refusal;
  }
}

/** Writes the holder in one transaction, and keeps the next one open: other processes read only committed rows. */
function hold(db: Connection): void {
  db.exec(
    'BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS holder (host TEXT NOT NULL, pid INTEGER NOT NULL) STRICT',
  );
  const self: Holder = { host: hostname(), pid: process.pid };
  const holder = readHolder(db);
  if (holder?.host === self.host && holder.pid === self.pid) return;
  db.exec('DELETE FROM holder');
  db.prepare('INSERT INTO holder (host, pid) VALUES (?, ?)').run(self.host, self.pid);
  db.exec('COMMIT');
  hold(db);
}

function explain(error: unknown, db: Connection, storePath: string): unknown {
  if (isSqliteError(error, 'SQLITE_NOTADB') || isSqliteError(error, 'SQLITE_CORRUPT')) {
    const message = `${storePath}.lock is damaged: delete it while no daemon runs`;
    return new StoreError('corrupt', message, error);
  }
  if (!isSqliteError(error, 'SQLITE_BUSY')) return error;
  const holder = tryReadHolder(db);
  const who =
    holder === undefined
      ? 'another process, or its file system has no file locks (then put it on a local disk)'
      : `process ${holder.pid} on ${holder.host}`;
  return new StoreError('busy', `${storePath} is in use by ${who}`, error);
}

/** Returns the holder; undefined while it writes its row, or if the file cannot be read. */
function tryReadHolder(db: Connection): Holder | undefined {
  try {
    return readHolder(db);
  } catch {
    return undefined;
  }
}

function readHolder(db: Connection): Holder | undefined {
  return db.prepare<[], Holder>('SELECT host, pid FROM holder').get();
}

/**
 * Makes every commit on this connection survive a loss of power (docs/specification.md#durability). Call it for each
 * connection: with a write-ahead log a connection starts with a weaker `synchronous`, whatever the last one had.
 * @throws {StoreError} if SQLite kept another setting
 */
export function makeDurable(db: Connection): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma(`journal_size_limit = ${MAX_WAL_BYTES}`);
  const journalMode = db.pragma('journal_mode', { simple: true });
  const synchronous = db.pragma('synchronous', { simple: true });
  if (journalMode === 'wal' && synchronous === 2) return;
  throw new StoreError(
    'other',
    `the store needs journal_mode wal and synchronous 2, and has ${String(journalMode)} and ${String(synchronous)}`,
  );
}

/**
 * Records which files these paths lead to, by device and inode. The returned function checks that they still do.
 * @throws {StoreError} `replaced`, naming the path that leads elsewhere
 */
export function rememberFiles(paths: readonly string[]): () => void {
  const files = new Map(paths.map((path) => [path, identify(path)]));
  return () => {
    for (const [path, file] of files) {
      const found = identify(path);
      if (found === file) continue;
      const what = found === undefined ? 'is no longer there' : 'is another file now';
      throw new StoreError(
        'replaced',
        `the store is not what was opened: ${path} ${what}; move it back, or start evalwatch again to go on with what is there`,
      );
    }
  };
}

function identify(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}

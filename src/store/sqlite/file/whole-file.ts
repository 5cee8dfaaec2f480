import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, renameSync } from 'node:fs';
import { lstat, open, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StoreError } from '../../../monitor/errors.ts';
import { isSystemError } from '../errors.ts';

/** An empty file beside the target, under a name that did not exist before. */
interface Draft {
  readonly path: string;
  readonly file: FileHandle;
}

/** Drafts to remove if a signal ends the process. Their names are random, so that a late removal takes no other file. */
const drafts = new Set<string>();
process.on('exit', () => {
  if (drafts.size === 0) return;
  // In a detached process: a removal from a file system that hangs would block the end of this one.
  const script = 'for (const path of process.argv.slice(1)) fs.rmSync(path, { force: true })';
  const args = ['--eval', script, '--', ...drafts];
  spawn(process.execPath, args, { detached: true, stdio: 'ignore' }).unref();
});

/**
 * Makes a file that only its owner may read, and that is complete from the moment it has its name: `write` fills a draft
 * beside it, which gets the name once it is on the disk. An existing file is replaced only with `replace`. An error leaves
 * nothing behind, except the complete file if only its directory cannot be synced. After `process.exit` another process removes
 * the draft.
 * @throws {StoreError} because `target` exists, is a directory or is a device
 * @throws whatever `write` throws, or an error with a system `code`
 */
export async function writeWhole(
  target: string,
  replace: boolean,
  write: (draft: Draft) => Promise<void>,
): Promise<void> {
  await assertFree(target, replace);
  const path = `${target}.partial-${randomBytes(6).toString('hex')}`;
  // `x` follows no link and opens no existing file.
  await using file = await open(path, 'wx', 0o600);
  drafts.add(path);
  try {
    await write({ path, file });
    await file.sync().catch((error: unknown) => {
      throw new StoreError('io', `${target} cannot be synced to the disk: ${String(error)}`, error);
    });
    await assertSame(path, file);
    if (!replace) reserve(target);
    renameSync(path, target);
  } catch (error) {
    // A draft that cannot be removed must not hide why it is left.
    await rm(path, { force: true }).catch(() => undefined);
    throw error;
  } finally {
    drafts.delete(path);
  }
  await syncDirectory(target);
}

/** Rejects a draft whose name leads to another file now, which could be a link to any file. */
async function assertSame(path: string, file: FileHandle): Promise<void> {
  const [named, opened] = await Promise.all([
    lstat(path, { bigint: true }),
    file.stat({ bigint: true }),
  ]);
  if (named.dev === opened.dev && named.ino === opened.ino) return;
  throw new StoreError(
    'other',
    `${path} was replaced by another program while it was written: choose a directory in which only you can write`,
  );
}

/** What the system answers where a directory cannot be read (mode 1733) or synced (CIFS, FUSE): the file has its name anyway. */
const CANNOT_SYNC = ['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'ENOSYS'];

/** Makes the name of the file survive a loss of power, where the file system can promise that. */
async function syncDirectory(target: string): Promise<void> {
  const path = dirname(resolve(target));
  try {
    await using directory = await open(path, 'r');
    await directory.sync();
  } catch (error) {
    if (CANNOT_SYNC.some((code) => isSystemError(error, code))) return;
    const message = `${target} is complete, but the directory ${path} cannot be synced to the disk, so that a power cut may remove it: ${String(error)}`;
    throw new StoreError('io', message, error);
  }
}

/** A device such as /dev/null must stay one. */
async function assertFree(target: string, replace: boolean): Promise<void> {
  const found = await (replace ? stat : lstat)(target).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found === undefined || (replace && found.isFile())) return;
  if (!replace) throw existsError(target);
  throw new StoreError('other', `${target} is not a file: choose another name`);
}

/**
 * Creates the target exclusively before `rename`, which would silently replace a file that appeared meanwhile. Synchronous,
 * so that no signal comes before `rename`.
 */
function reserve(target: string): void {
  try {
    closeSync(openSync(target, 'wx', 0o600));
  } catch (error) {
    throw isSystemError(error, 'EEXIST') ? existsError(target) : error;
  }
}

function existsError(target: string): StoreError {
  return new StoreError('other', `${target} exists: choose another name, or replace it by --force`);
}

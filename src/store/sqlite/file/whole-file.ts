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
 * nothing behind. After `process.exit` another process removes the draft.
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
    await file.sync();
    if (!replace) reserve(target);
    renameSync(path, target);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    drafts.delete(path);
  }
  await using directory = await open(dirname(resolve(target)), 'r');
  await directory.sync();
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

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { renameSync } from 'node:fs';
import { open, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StoreError } from '../monitor/errors.ts';
import { isSystemError } from './errors.ts';

/** An empty file beside the target, which nobody had before. */
interface Draft {
  readonly path: string;
  readonly file: FileHandle;
}

/** What is to go away if a signal ends the process: drafts, and names that are taken for files that are not there yet. */
const unfinished = new Set<string>();
process.on('exit', () => {
  if (unfinished.size === 0) return;
  // By a process for which nobody waits: a file system that hangs would hold this one up.
  const script = 'for (const path of process.argv.slice(1)) fs.rmSync(path, { force: true })';
  const args = ['--eval', script, '--', ...unfinished];
  spawn(process.execPath, args, { detached: true, stdio: 'ignore' }).unref();
});

/**
 * Makes a file that only its owner may read, so that under its name there is never half of it: `write` fills an empty
 * one beside it, which gets the name once it is on the disk. An existing file is replaced only with `replace`. An error leaves
 * nothing behind, nor does `process.exit`, after which another process removes what there is.
 * @throws {StoreError} because `target` exists, or is a directory or a device
 * @throws whatever `write` throws, or an error with a system `code`
 */
export async function writeWhole(
  target: string,
  replace: boolean,
  write: (draft: Draft) => Promise<void>,
): Promise<void> {
  const reserved = replace ? await assertReplaceable(target) : await reserve(target);
  try {
    await fill(target, write);
  } catch (error) {
    if (reserved) await rm(target, { force: true });
    throw error;
  } finally {
    unfinished.delete(target);
  }
  await using directory = await open(dirname(resolve(target)), 'r');
  await directory.sync();
}

async function fill(target: string, write: (draft: Draft) => Promise<void>): Promise<void> {
  const path = `${target}.partial-${randomBytes(6).toString('hex')}`;
  await using file = await create(path);
  unfinished.add(path);
  try {
    await write({ path, file });
    await file.sync();
    // At once: no signal comes between a file that is complete and the knowledge of it.
    renameSync(path, target);
    unfinished.delete(target);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    unfinished.delete(path);
  }
}

/** Takes the name, so that nobody else's file of this name can be lost. */
async function reserve(target: string): Promise<true> {
  try {
    const file = await create(target);
    unfinished.add(target);
    await file.close();
    return true;
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    throw new StoreError(
      'other',
      `${target} exists: choose another name, or replace it by --force`,
    );
  }
}

/** A device such as /dev/null must stay one. */
async function assertReplaceable(target: string): Promise<false> {
  const found = await stat(target).catch((error: unknown) => {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found === undefined || found.isFile()) return false;
  throw new StoreError('other', `${target} is not a file: choose another name`);
}

/** A file that did not exist; `x` follows no link and takes over nothing that somebody has put there. */
function create(path: string): Promise<FileHandle> {
  return open(path, 'wx', 0o600);
}

import { randomBytes } from 'node:crypto';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StoreError } from '../monitor/errors.ts';
import { isSystemError } from './errors.ts';

/** An empty file beside the target, which nobody had before. */
interface Draft {
  readonly path: string;
  readonly file: FileHandle;
}

/**
 * Makes a file that only its owner may read, so that under its name there is never half of it: `write` fills an empty
 * one beside it, which gets the name once it is on the disk. An existing file is replaced only with `replace`.
 * @throws {StoreError} because `target` exists
 * @throws whatever `write` throws, or an error with a system `code`; then nothing is left behind
 */
export async function writeWhole(
  target: string,
  replace: boolean,
  write: (draft: Draft) => Promise<void>,
): Promise<void> {
  const reserved = !replace && (await reserve(target));
  try {
    await fill(target, write);
  } catch (error) {
    if (reserved) await rm(target, { force: true });
    throw error;
  }
  await using directory = await open(dirname(resolve(target)), 'r');
  await directory.sync();
}

async function fill(target: string, write: (draft: Draft) => Promise<void>): Promise<void> {
  const path = `${target}.partial-${randomBytes(6).toString('hex')}`;
  await using file = await create(path);
  try {
    await write({ path, file });
    await file.sync();
    await rename(path, target);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** Takes the name, so that nobody else's file of this name can be lost. */
async function reserve(target: string): Promise<true> {
  try {
    await (await create(target)).close();
    return true;
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    throw new StoreError(
      'other',
      `${target} exists: choose another name, or replace it by --force`,
    );
  }
}

/** A file that did not exist; `x` follows no link and takes over nothing that somebody has put there. */
function create(path: string): Promise<FileHandle> {
  return open(path, 'wx', 0o600);
}

import { open, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StoreError } from '../monitor/errors.ts';
import { isSystemError } from './errors.ts';
import { createPrivately } from './store-file.ts';

/**
 * Makes a file that only its owner may read, so that under its name there is never half of it: `write` fills an empty
 * one beside it, which gets the name once it is on the disk. An existing file is replaced only with `replace`.
 * @throws {StoreError} because `target` exists
 * @throws whatever `write` throws, or an error with a system `code`; then nothing is left behind
 */
export async function writeWhole(
  target: string,
  replace: boolean,
  write: (path: string) => Promise<void>,
): Promise<void> {
  const reserved = !replace && (await reserve(target));
  const draft = `${target}.partial-${process.pid}`;
  try {
    await createPrivately(draft);
    await write(draft);
    await sync(draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    if (reserved) await rm(target, { force: true });
    throw error;
  }
  await sync(dirname(resolve(target)));
}

/** Takes the name, so that nobody else's file of this name can be lost. */
async function reserve(target: string): Promise<true> {
  try {
    await (await open(target, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
    throw new StoreError(
      'other',
      `${target} exists: choose another name, or replace it by --force`,
    );
  }
}

async function sync(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

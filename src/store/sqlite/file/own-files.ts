import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StoreError } from '../../../monitor/errors.ts';
import { isSystemError } from '../errors.ts';

/** Suffixes of the files that SQLite and the daemon keep beside a store. */
export const SUFFIXES = ['-wal', '-shm', '-journal', '.lock', '.lock-journal'];

/**
 * Rejects a target that is the store at `path` or one of the files beside it, by name or by link.
 * @throws {StoreError}
 */
export async function assertNotOwn(path: string, target: string): Promise<void> {
  const store = await resolveName(path);
  const name = join(await resolveName(dirname(target)), basename(target));
  const file = await identify(target);
  for (const suffix of ['', ...SUFFIXES]) {
    const own = store + suffix;
    const isOwn = own === name || (file !== undefined && file === (await identify(own)));
    if (!isOwn) continue;
    const what = suffix === '' ? 'the store itself' : `the store's ${suffix} file`;
    throw new StoreError('other', `${target} is ${what}: choose another name`);
  }
}

/** Returns the real path, or the path itself if it does not exist. */
async function resolveName(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return path;
    throw error;
  }
}

/** Returns device and inode; undefined if there is no file. Asynchronous, so that a signal ends a command whose file system hangs. */
async function identify(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StoreError } from '../../../monitor/errors.ts';
import { isSystemError } from '../errors.ts';

/** What SQLite and the daemon keep beside a store, now and then. */
const SUFFIXES = ['-wal', '-shm', '-journal', '.lock', '.lock-journal'];

/**
 * Refuses to write a file where the store at `path` or one of those beside it is, by that name or by a link to it.
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

/** The real path, or the path itself where there is nothing. */
async function resolveName(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return path;
    throw error;
  }
}

/** Device and inode, undefined if there is none. Not at once: a signal ends a command that a file system does not answer. */
async function identify(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

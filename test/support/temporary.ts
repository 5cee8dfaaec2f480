import { mkdtemp, readFile, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Retries, because a child that is ending may still write there. */
const REMOVAL = { recursive: true, force: true, maxRetries: 5 };

/** Creates a directory that `await using` removes. */
export async function temporaryDirectory(
  parent = tmpdir(),
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(parent, 'evalwatch-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, REMOVAL) };
}

/** File system in memory on Linux. */
const MEMORY = '/dev/shm';
/** Minimum free space there. Containers often have 64 MB. */
const FREE_BYTES = 2 * 1024 ** 3;
/** Minimum available memory, within the limit of a container too, because files there use memory that the tests need. */
const AVAILABLE_BYTES = 6 * 1024 ** 3;

/**
 * Creates a directory for files that need not survive a crash of the computer: in `TMPDIR` if that is set, otherwise in
 * memory if there is room and programs may run from there.
 */
export async function directoryInMemory(): ReturnType<typeof temporaryDirectory> {
  const isInMemory = process.env['TMPDIR'] === undefined && (await hasRoomInMemory());
  return await temporaryDirectory(isInMemory ? MEMORY : tmpdir());
}

async function hasRoomInMemory(): Promise<boolean> {
  if (process.availableMemory() < AVAILABLE_BYTES) return false;
  try {
    const { bavail, bsize } = await statfs(MEMORY);
    const mounts = await readFile('/proc/self/mounts', 'utf8');
    const lines = mounts.split('\n').map((line) => line.split(' '));
    const isExecutable = !lines.some(
      ([, place, , given = '']) => place === MEMORY && given.split(',').includes('noexec'),
    );
    return isExecutable && bavail * bsize >= FREE_BYTES;
  } catch {
    return false;
  }
}

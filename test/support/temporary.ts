import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new directory that goes away with `await using`. */
export async function temporaryDirectory(
  parent = tmpdir(),
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(parent, 'evalwatch-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A file system in memory, as Linux has it. */
const MEMORY = '/dev/shm';
/** Free space that it must have. Containers often have 64 MB. */
const FREE_BYTES = 2 * 1024 ** 3;
/** Memory that must be available, also to a container: files there take it from the tests. */
const AVAILABLE_BYTES = 6 * 1024 ** 3;

/** A new directory in memory where there is room, for many files that no test has to find again after a crash of the computer. */
export async function directoryInMemory(): ReturnType<typeof temporaryDirectory> {
  const free = await statfs(MEMORY).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  const hasRoom = free >= FREE_BYTES && process.availableMemory() >= AVAILABLE_BYTES;
  return await temporaryDirectory(hasRoom ? MEMORY : tmpdir());
}

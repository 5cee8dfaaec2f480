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
const MEMORY_BYTES = 2 * 1024 ** 3;

/** A new directory in memory where there is room, for many files that no test has to find again after a crash of the computer. */
export async function directoryInMemory(): ReturnType<typeof temporaryDirectory> {
  const free = await statfs(MEMORY).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return await temporaryDirectory(free < MEMORY_BYTES ? tmpdir() : MEMORY);
}

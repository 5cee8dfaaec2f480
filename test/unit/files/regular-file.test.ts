import { stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRegularFile, readRegularFileSync } from '../../../src/files/regular-file.ts';
import { notFiles } from '../../support/not-a-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const ways: readonly [string, (path: string, maxBytes: number) => unknown][] = [
  ['asynchronously', readRegularFile],
  ['synchronously', readRegularFileSync],
];

describe.each(ways)('a file that is read %s', (_, read) => {
  it('is read through symbolic links, up to the size limit', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'file');
    await writeFile(path, 'x'.repeat(100_000));
    await symlink('file', join(directory.path, 'link'));
    const link = join(directory.path, 'link');
    expect(await read(link, 100_000)).toEqual({ bytes: Buffer.alloc(100_000, 'x') });
    expect(await read(link, 99_999)).toEqual({ fault: 'TOO_LARGE' });
  });

  it('may be empty', async () => {
    await using directory = await temporaryDirectory();
    await writeFile(join(directory.path, 'file'), '');
    expect(await read(join(directory.path, 'file'), 0)).toEqual({ bytes: Buffer.alloc(0) });
  });

  it('has the same limit if the system reports its size as 0', async () => {
    const { size } = await stat('/proc/self/environ');
    expect(size).toBe(0);
    expect(await read('/proc/self/environ', 10)).toEqual({ fault: 'TOO_LARGE' });
    expect(await read('/proc/self/environ', 1_000_000)).toEqual({ bytes: expect.any(Buffer) });
  });

  it('is not read if it is a pipe, a socket, a device or a directory', async () => {
    await using directory = await temporaryDirectory();
    const faults = Object.entries(await notFiles(directory.path)).map(async ([what, path]) => {
      return [what, await read(path, 1000)];
    });
    expect(Object.fromEntries(await Promise.all(faults))).toEqual({
      'a pipe': { fault: 'NOT_REGULAR' },
      'a socket': { fault: 'NOT_REGULAR' },
      'a device': { fault: 'NOT_REGULAR' },
      'a directory': { fault: 'EISDIR', cause: expect.any(Error) },
    });
  });

  it('results in ENOENT if it does not exist', async () => {
    expect(await read('/nowhere/file', 1)).toEqual({ fault: 'ENOENT', cause: expect.any(Error) });
  });
});

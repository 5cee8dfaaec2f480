import { stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readFile, readTextFile } from '../../../src/files/read-file.ts';
import { notFiles } from '../../support/not-a-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('a file', () => {
  it('is read through symbolic links, up to the size limit', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'file');
    await writeFile(path, 'x'.repeat(100_000));
    await symlink('file', join(directory.path, 'link'));
    const link = join(directory.path, 'link');
    expect(readFile(link, 100_000)).toEqual({ bytes: Buffer.alloc(100_000, 'x') });
    expect(readFile(link, 99_999)).toEqual({ fault: 'TOO_LARGE' });
  });

  it('may be empty', async () => {
    await using directory = await temporaryDirectory();
    await writeFile(join(directory.path, 'file'), '');
    expect(readFile(join(directory.path, 'file'), 0)).toEqual({ bytes: Buffer.alloc(0) });
  });

  it('has the same limit if the system reports its size as 0', async () => {
    const { size } = await stat('/proc/self/environ');
    expect(size).toBe(0);
    expect(readFile('/proc/self/environ', 10)).toEqual({ fault: 'TOO_LARGE' });
    expect(readFile('/proc/self/environ', 1_000_000)).toEqual({ bytes: expect.any(Buffer) });
  });

  it('is not read if it is a pipe, a socket, a device or a directory', async () => {
    await using directory = await temporaryDirectory();
    const faults = Object.entries(await notFiles(directory.path)).map(([what, path]) => [
      what,
      readFile(path, 1000),
    ]);
    expect(Object.fromEntries(faults)).toEqual({
      'a pipe': { fault: 'NOT_REGULAR' },
      'a socket': { fault: 'NOT_REGULAR' },
      'a device': { fault: 'NOT_REGULAR' },
      'a directory': { fault: 'EISDIR' },
    });
  });

  it('results in ENOENT if it does not exist', () => {
    expect(readFile('/nowhere/file', 1)).toEqual({ fault: 'ENOENT' });
  });

  it('is no text if it is not UTF-8', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'file');
    await writeFile(path, 'é');
    expect(readTextFile(path, 2)).toEqual({ text: 'é' });
    expect(readTextFile(path, 1)).toEqual({ fault: 'the file is larger than 1 bytes' });
    await writeFile(path, Buffer.from([0xff]));
    expect(readTextFile(path, 2)).toEqual({ fault: 'the file is not UTF-8 text' });
  });
});

import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { readRegularFile, readRegularFileSync } from '../../../src/files/regular-file.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Called between the stat of a path and its opening. */
let swap: (path: string) => void = () => {};

vi.mock(import('node:fs/promises'), async (original) => {
  const real = await original();
  const stat = async (path: string) => {
    const stats = await real.stat(path);
    swap(path);
    return stats;
  };
  return { ...real, stat: stat as typeof real.stat };
});
vi.mock(import('node:fs'), async (original) => {
  const real = await original();
  const statSync = (path: string) => {
    const stats = real.statSync(path);
    swap(path);
    return stats;
  };
  return { ...real, statSync: statSync as typeof real.statSync };
});

beforeEach(() => {
  swap = () => {};
});

it.each<[string, (path: string, maxBytes: number) => unknown]>([
  ['asynchronously', readRegularFile],
  ['synchronously', readRegularFileSync],
])('a pipe that replaces a file between stat and open is not read: %s', async (_, read) => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'file');
  writeFileSync(path, 'text');
  expect(await read(path, 1000)).toEqual({ bytes: Buffer.from('text') });
  swap = () => {
    rmSync(path);
    execFileSync('mkfifo', [path]);
  };
  expect(await read(path, 1000)).toEqual({ fault: 'NOT_REGULAR' });
});

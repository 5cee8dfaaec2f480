import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createConfigLook } from '../../../src/app/config-look.ts';
import { toSource } from '../../../src/config/source.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Sets up a watched file. `looks` checks it and returns the number of reloads. */
async function watched() {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const file = join(directory.path, 'evalwatch.yaml');
  await writeFile(file, 'first');
  let now = 0;
  let sources = [toSource(file, 'first')];
  let isBad = false;
  let hasFailed = false;
  let meanwhile = async () => {};
  let reloads = 0;
  const look = createConfigLook({
    engine: { config: () => ({ sources }) },
    reload: {
      hasFailed: () => hasFailed,
      runWatched: async ({ content, isWanted }) => {
        await meanwhile();
        if (!(await isWanted())) return;
        reloads += 1;
        hasFailed = isBad;
        if (!isBad) sources = [{ path: file, digest: content }];
      },
    },
    clock: { monotonic: () => now },
  });
  return {
    file,
    write: (text: string) => writeFile(file, text),
    looks: async (count: number) => {
      for (let each = 0; each < count; each += 1) await look();
      return reloads;
    },
    passes: (ms: number) => (now += ms),
    turnsBad: (value: boolean) => (isBad = value),
    whileItIsRead: (action: () => Promise<void>) => (meanwhile = action),
    reloadedElsewhere: (text: string) => {
      sources = [toSource(file, text)];
      hasFailed = false;
    },
    failedElsewhere: () => (hasFailed = true),
  };
}

it('new content is reloaded once, after two checks have found it', async () => {
  const { write, looks } = await watched();
  expect(await looks(3)).toBe(0);
  await write('second');
  expect(await looks(1)).toBe(0);
  expect(await looks(1)).toBe(1);
  expect(await looks(5)).toBe(1);
});

it('content that changes at every check is not reloaded', async () => {
  const { write, looks } = await watched();
  for (const part of ['f', 'fi', 'fir', 'firs']) {
    await write(part);
    expect(await looks(1)).toBe(0);
  }
  await write('first');
  expect(await looks(5)).toBe(0);
});

it('content that changes again before it is loaded is not reloaded', async () => {
  const { write, looks, whileItIsRead } = await watched();
  await write('half');
  whileItIsRead(() => write('whole'));
  expect(await looks(3)).toBe(0);
  expect(await looks(1)).toBe(1);
});

it('a missing file is reloaded only after five checks', async () => {
  const { file, write, looks, turnsBad } = await watched();
  await rm(file);
  expect(await looks(4)).toBe(0);
  await write('first');
  expect(await looks(5)).toBe(0);
  turnsBad(true);
  await rm(file);
  expect(await looks(4)).toBe(0);
  expect(await looks(5)).toBe(1);
});

it('a failed reload is repeated after a minute, or without a delay for other content', async () => {
  const { write, looks, passes, turnsBad } = await watched();
  turnsBad(true);
  await write('bad');
  expect(await looks(9)).toBe(1);
  passes(59_999);
  expect(await looks(1)).toBe(1);
  passes(1);
  expect(await looks(9)).toBe(2);
  turnsBad(false);
  await write('first');
  expect(await looks(9)).toBe(3);
  passes(600_000);
  expect(await looks(1)).toBe(3);
});

it('content that another reload applies meanwhile is not reloaded again', async () => {
  const { write, looks, whileItIsRead, reloadedElsewhere } = await watched();
  await write('second');
  whileItIsRead(async () => reloadedElsewhere('second'));
  expect(await looks(5)).toBe(0);
});

it('content that another reload has read is skipped, unless that reload failed', async () => {
  const { write, looks, reloadedElsewhere, failedElsewhere } = await watched();
  await write('second');
  reloadedElsewhere('second');
  expect(await looks(3)).toBe(0);
  failedElsewhere();
  expect(await looks(3)).toBe(1);
});

import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomNumbers } from '../../../../proof/random.ts';
import { systemClock } from '../../../../src/app/clock.ts';
import { KINDS } from '../../../../src/domain/status.ts';
import { StoreError } from '../../../../src/monitor/errors.ts';
import type { Store } from '../../../../src/monitor/ports/store.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { pollItems } from '../../../support/experiments.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

describe('a damaged store', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let path: string;
  let intact: Buffer;

  beforeEach(async () => {
    directory = await temporaryDirectory();
    path = join(directory.path, 'store.db');
    const store = await open();
    await store.configureProjects(['p'], 1);
    await see(store, 'PENDING');
    await see(store, 'FAILED');
    await store.close();
    intact = await readFile(path);
  });
  afterEach(() => directory[Symbol.asyncDispose]());

  const open = () => openStoreInProcess({ path, clock: systemClock, emit: () => {} });

  const see = (store: Store, status: string) => {
    const ids = Array.from({ length: 200 }, (_, index) => `x${index}`);
    return pollItems(store, 'p', Object.fromEntries(ids.map((id) => [id, status])), 1);
  };

  /** Returns every error of opening, reading and writing. */
  async function errorsOf(): Promise<readonly unknown[]> {
    const errors: unknown[] = [];
    const attempt = async <Result>(work: () => Promise<Result>): Promise<Result | undefined> => {
      try {
        return await work();
      } catch (error) {
        errors.push(error);
        return undefined;
      }
    };
    const reader = await attempt(() => openReader({ path }));
    if (reader !== undefined) {
      await attempt(() => reader.snapshot());
      await attempt(() => reader.statuses({}));
      await attempt(() => reader.transitions({}));
      await attempt(() => reader.failures({}));
      await attempt(() => reader.close());
    }
    const store = await attempt(open);
    if (store !== undefined) {
      await attempt(() => store.loadKnown('p', KINDS));
      await attempt(() => store.pendingFailures({ limitPerProject: 9 }));
      await attempt(() => see(store, 'RUNNING'));
      await attempt(() => store.prune({ before: 1, firstDay: 0 }));
      await attempt(() => store.close());
    }
    return errors;
  }

  it('is reported as corrupt with advice on what to do', async () => {
    const PAGE = 4096;
    await writeFile(path, Buffer.from(intact).fill(0xff, PAGE));
    const errors = await errorsOf();
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) {
      expect(error).toMatchObject({
        name: 'StoreError',
        reason: 'corrupt',
        message: expect.stringContaining('restore a backup, or move it away'),
      });
    }
  });

  it('is reported as corrupt if its file is truncated', async () => {
    await writeFile(path, intact.subarray(0, intact.length / 2));
    const errors = await errorsOf();
    expect(errors).toContainEqual(expect.objectContaining({ reason: 'corrupt' }));
    expect(errors.every((error) => error instanceof StoreError)).toBe(true);
  });

  it('causes only StoreErrors if random bits are flipped', async () => {
    const random = randomNumbers(42);
    let found = 0;
    for (let round = 0; round < 15; round += 1) {
      const damaged = Buffer.from(intact);
      for (let flip = 0; flip < 30; flip += 1) {
        const position = Math.floor(random() * damaged.length);
        damaged[position] = (damaged[position] ?? 0) ^ (1 << Math.floor(random() * 8));
      }
      await writeFile(path, damaged);
      const errors = await errorsOf();
      found += errors.length;
      expect(errors.filter((error) => !(error instanceof StoreError))).toEqual([]);
      // `busy` would be the lock of the previous round.
      expect(errors).not.toContainEqual(expect.objectContaining({ reason: 'busy' }));
      for (const suffix of ['-wal', '-shm']) await rm(path + suffix, { force: true });
    }
    expect(found).toBeGreaterThan(0);
  }, 120_000);
});

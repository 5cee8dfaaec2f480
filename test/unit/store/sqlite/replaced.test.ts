import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import type { Clock } from '../../../../src/monitor/ports/clock.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { eventLog } from '../../../support/monitor.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { see } from './history.ts';

const PATIENCE = { timeout: 100_000, interval: 5 };

const NEVER_MS = 2 ** 31 - 1;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await directory[Symbol.asyncDispose]();
});

const at = (...names: string[]) => join(directory.path, ...names);

async function openLinked() {
  await mkdir(at('data'));
  await writeFile(at('data', 'store.db'), '');
  await symlink(at('data', 'store.db'), at('link.db'));
  const events = eventLog();
  let compareFiles = () => {};
  const clock: Clock = {
    ...systemClock,
    // The only interval of a store is that at which it compares its files.
    every: (_ms, callback) => {
      compareFiles = callback;
      return systemClock.every(NEVER_MS, callback);
    },
  };
  const store = await openStoreInProcess({ path: at('link.db'), clock, emit: events.emit });
  await store.configureProjects(['p'], 1);
  await see(store, 'p', { a: 'RUNNING' }, 10);
  return { store, compareFiles, failures: () => events.of('store.commit_failed') };
}

const FILES = ['store.db', 'store.db-wal', 'store.db-shm', 'store.db.lock'].map((name) => ({
  what: `${name} is`,
  path: `data/${name}`,
}));

describe('a store whose files are moved or replaced', () => {
  it.each([
    ...FILES,
    { what: 'the directory is', path: 'data' },
    { what: 'the link is', path: 'link.db' },
  ])('stores nothing while $what moved away, and continues once it is back', async ({ path }) => {
    const { store, compareFiles, failures } = await openLinked();
    expect(store.isInPlace()).toBe(true);
    await rename(at(path), at('elsewhere'));
    await expect(see(store, 'p', { a: 'FAILED' }, 20)).rejects.toMatchObject({
      name: 'StoreError',
      reason: 'replaced',
      message: expect.stringContaining('is no longer there; move it back, or start evalwatch'),
    });
    compareFiles();
    await vi.waitFor(() => expect(store.isInPlace()).toBe(false), PATIENCE);
    expect(failures()).toContainEqual(expect.objectContaining({ reason: 'replaced' }));
    // What was stored before can still be read, as with a full disk.
    expect(await store.transitions({})).toEqual([]);

    await rename(at('elsewhere'), at(path));
    compareFiles();
    await vi.waitFor(() => expect(store.isInPlace()).toBe(true), PATIENCE);
    await see(store, 'p', { a: 'FAILED' }, 30);
    expect(await store.transitions({})).toMatchObject([{ from: 'RUNNING', to: 'FAILED', at: 30 }]);
    await store.close();
  });

  it.each(FILES)('detects without a commit that $what another file', async ({ path }) => {
    const { store, compareFiles, failures } = await openLinked();
    await rm(at(path));
    await writeFile(at(path), '');
    compareFiles();
    await vi.waitFor(() => expect(failures()).not.toEqual([]), PATIENCE);
    expect(failures()[0]?.error.message).toContain(`${at(path)} is another file now`);
    expect(store.isInPlace()).toBe(false);
    await store.close();
  });

  it('rejects a commit if its symlink leads to another store', async () => {
    const { store } = await openLinked();
    const other = await openStoreInProcess({
      path: at('other.db'),
      clock: systemClock,
      emit: () => {},
    });
    await rm(at('link.db'));
    await symlink(at('other.db'), at('link.db'));
    await expect(see(store, 'p', { a: 'FAILED' }, 20)).rejects.toMatchObject({
      reason: 'replaced',
    });
    await store.close();
    await other.close();
  });

  it('does not touch the log of the store that took its place when it closes', async () => {
    const { store } = await openLinked();
    await rename(at('data'), at('elsewhere'));
    await mkdir(at('data'));
    const next = await openStoreInProcess({
      path: at('data', 'store.db'),
      clock: systemClock,
      emit: () => {},
    });
    await next.configureProjects(['q'], 1);
    await store.close();
    await next.configureProjects(['q', 'r'], 1);
    expect(await next.projects()).toEqual(['q', 'r']);
    await next.close();
    const again = await openReader({ path: at('link.db') });
    expect(await again.projects()).toEqual(['q', 'r']);
    await again.close();
  });

  it('makes a reader fail until the files are back', async () => {
    const { store } = await openLinked();
    const reader = await openReader({ path: at('link.db') });
    expect(await reader.projects()).toEqual(['p']);
    await rename(at('data'), at('elsewhere'));
    await expect(reader.statuses({})).rejects.toMatchObject({ reason: 'replaced' });
    await rename(at('elsewhere'), at('data'));
    expect(await reader.statuses({})).toHaveLength(1);
    await reader.close();
    await store.close();
  });
});

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startChild } from './child.ts';

describe('the lock of a store', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  beforeEach(async () => {
    directory = await temporaryDirectory();
  });
  afterEach(() => directory[Symbol.asyncDispose]());

  const at = (...names: string[]) => join(directory.path, ...names);
  const openInThread = (path: string) => openStore({ path, clock: systemClock, emit: () => {} });
  // A lock belongs to the process, whichever of its threads SQLite works in.
  const open = (path: string) => openStoreInProcess({ path, clock: systemClock, emit: () => {} });

  it('rejects a second daemon, names the process and host of the holder, and ends with it', async () => {
    await (await open(at('store.db'))).close();
    await using child = startChild('hold-store.ts', at('store.db'));
    expect(await child.lines.next()).toMatchObject({ value: 'open' });
    await expect(open(at('store.db'))).rejects.toMatchObject({
      name: 'StoreError',
      reason: 'busy',
      message: `${at('store.db')} is in use by process ${child.pid} on ${hostname()}`,
    });
    await child.kill();
    const store = await open(at('store.db'));
    expect(await store.projects()).toEqual([]);
    await store.close();
  });

  it('is not granted twice to one process, which keeps it after a second attempt and after a reader', async () => {
    const store = await openInThread(at('store.db'));
    await store.configureProjects(['p'], 1);
    await expect(openInThread(at('store.db'))).rejects.toMatchObject({
      reason: 'busy',
      message: expect.stringContaining(`process ${process.pid} on `),
    });
    const reader = await openReader({ path: at('store.db') });
    expect(await reader.projects()).toEqual(['p']);
    await reader.close();
    await using child = startChild('hold-store.ts', at('store.db'));
    expect(await child.lines.next()).toMatchObject({
      value: `StoreError: ${at('store.db')} is in use by process ${process.pid} on ${hostname()}`,
    });
    await store.configureProjects(['p', 'q'], 2);
    await store.close();
  });

  it('is granted to only one of two concurrent opens', async () => {
    const outcomes = await Promise.allSettled([
      openInThread(at('store.db')),
      openInThread(at('store.db')),
    ]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') await outcome.value.close();
    }
  });

  it('also applies to a store opened through its real path, a link to it, or a link above it', async () => {
    await mkdir(at('real'));
    await writeFile(at('real', 'store.db'), '');
    await symlink('real/store.db', at('link.db'));
    await symlink('link.db', at('again.db'));
    await symlink('real', at('folder'));
    const names = ['real/store.db', 'again.db', 'folder/store.db', 'real/../real/store.db'];
    const store = await open(at('link.db'));
    await Promise.all(
      ['link.db', ...names].map(async (name) => {
        await expect(open(at(name))).rejects.toThrow(`is in use by process ${process.pid}`);
      }),
    );
    await store.close();
    for (const name of names) {
      const again = await open(at(name));
      await expect(open(at('link.db'))).rejects.toThrow(`is in use by process ${process.pid}`);
      await again.close();
    }
  });

  it('is released after a failed open', async () => {
    await writeFile(at('file.db'), 'text');
    await expect(open(at('file.db'))).rejects.toThrow('not an SQLite database');
    await writeFile(at('file.db'), '');
    await (await open(at('file.db'))).close();
  });

  it('names a file system without locks as a possible cause if the holder cannot be read', async () => {
    await (await open(at('store.db'))).close();
    // As a file system without locks, it lets nobody read.
    const db = new Database(at('store.db.lock'));
    db.exec('BEGIN EXCLUSIVE');
    await expect(open(at('store.db'))).rejects.toMatchObject({
      reason: 'busy',
      message: expect.stringContaining('or its file system has no file locks'),
    });
    db.close();
  });

  it('reports a damaged lock file', async () => {
    await writeFile(at('store.db.lock'), 'text'.repeat(300));
    await expect(open(at('store.db'))).rejects.toMatchObject({
      reason: 'corrupt',
      message: expect.stringContaining('store.db.lock is damaged: delete it'),
    });
  });
});

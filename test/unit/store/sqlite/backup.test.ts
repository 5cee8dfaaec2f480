import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { backUp } from '../../../../src/store/sqlite/backup.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startChild } from './child.ts';
import { see, writeHistory } from './history.ts';
import { withCause } from '../../../support/failures.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
let target: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'store.db');
  target = join(directory.path, 'copy.db');
  await writeHistory(path);
});
afterEach(() => directory[Symbol.asyncDispose]());

async function contents(file: string) {
  const reader = await openReader({ path: file });
  const rows = {
    projects: await reader.projects(),
    snapshot: await reader.snapshot(),
    statuses: await reader.statuses({}),
    transitions: await reader.transitions({}),
    failures: await reader.failures({}),
    causes: await reader.causes({ since: 0, limit: 9 }),
  };
  await reader.close();
  return rows;
}

describe('a backup', () => {
  it('has the content of the store and mode 0600, and leaves no partial file', async () => {
    const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
    const [failure] = await store.pendingFailures({ limitPerProject: 1 });
    const errorInfo = { error_id: 'E', error_msg: 'broken' };
    if (failure === undefined) throw new Error('nothing is pending');
    await store.settleFailure(failure, withCause({ errorInfo, errorMsgTruncated: false }), 50);
    await store.close();
    expect((await contents(path)).causes.causes).toMatchObject([{ count: 1, errorInfo }]);
    const bytes = await backUp({ path, target, replace: false });
    expect(await contents(target)).toEqual(await contents(path));
    const { mode, size } = await stat(target);
    expect(mode & 0o777).toBe(0o600);
    expect(size).toBe(bytes);
    expect((await readdir(directory.path)).filter((name) => name.includes('partial'))).toEqual([]);
  });

  it('can be opened by a daemon, which continues the transition ids', async () => {
    await backUp({ path, target, replace: false });
    const store = await openStoreInProcess({ path: target, clock: systemClock, emit: () => {} });
    await see(store, 'p', { a: 'FAILED', b: 'FAILED' }, 50);
    const [newest] = await store.transitions({ limit: 1 });
    const [before] = (await contents(path)).transitions;
    expect(newest?.transitionId).toBe((before?.transitionId ?? 0) + 1);
    await store.close();
  });

  it('includes commits that are only in the write-ahead log', async () => {
    const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
    await see(store, 'p', { a: 'FAILED', b: 'FAILED' }, 50);
    await backUp({ path, target, replace: false });
    expect((await contents(target)).transitions).toEqual(await store.transitions({}));
    await store.close();
  });

  it('is intact and has every commit so far while another process commits without a pause', async () => {
    const busy = join(directory.path, 'busy.db');
    await using child = startChild('commit-forever.ts', busy);
    const nextCommitted = async () => Number.parseInt((await child.lines.next()).value ?? '', 10);
    let committed = await nextCommitted();
    for (let round = 0; round < 5; round += 1) {
      await backUp({ path: busy, target, replace: true });
      const db = new Database(target, { readonly: true });
      expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
      const copied = Number(db.prepare('SELECT max(transition_id) FROM transition').pluck().get());
      db.close();
      expect(copied).toBeGreaterThanOrEqual(committed);
      // The next copy must have a commit that this one lacks.
      while (committed <= copied) committed = await nextCommitted();
    }
  });

  it('replaces an existing file only if replace is set', async () => {
    await writeFile(target, 'precious');
    await expect(backUp({ path, target, replace: false })).rejects.toThrow(
      `${target} exists: choose another name, or replace it by --force`,
    );
    expect(await readFile(target, 'utf8')).toBe('precious');
    await backUp({ path, target, replace: true });
    expect(await contents(target)).toEqual(await contents(path));
  });

  it.each(['-wal', '-journal'])(
    'is rejected if the target has the %s file of another store',
    async (suffix) => {
      await writeFile(target + suffix, 'of another store');
      for (const replace of [false, true]) {
        await expect(backUp({ path, target, replace })).rejects.toThrow(
          `${target}${suffix} would damage the copy`,
        );
      }
      expect(existsSync(target)).toBe(false);
    },
  );

  it('rejects a target that is a pipe', async () => {
    execFileSync('mkfifo', [target]);
    await expect(backUp({ path, target, replace: true })).rejects.toThrow(
      `${target} is not a file: choose another name`,
    );
    expect((await stat(target)).isFIFO()).toBe(true);
  });

  it('leaves no draft when a signal ends the process', async () => {
    await using child = startChild('back-up-and-exit.ts', path, target);
    expect((await child.lines.next()).value).toMatch(/^copy\.db\.partial-[0-9a-f]{12} 600$/);
    // Waits until stdout is closed.
    await child.lines.next();
    const names = await readdir(directory.path);
    expect(names.filter((name) => !name.startsWith('store.db'))).toEqual([]);
  });

  it('leaves no file beside the store if it is damaged', async () => {
    const db = new Database(path);
    db.exec("UPDATE record SET name = hex(zeroblob(5e5)) WHERE id = 'a'");
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    const image = await readFile(path);
    image.fill(0xff, image.length - 200_000, image.length - 100_000);
    await writeFile(path, image);
    await expect(backUp({ path, target, replace: false })).rejects.toThrow('damaged');
    const names = await readdir(directory.path);
    expect(names.filter((name) => !name.startsWith('store.db'))).toEqual([]);
  });

  it.each(['', '-wal', '-shm', '-journal', '.lock'])(
    'never replaces the store%s, even through another path or a symlink',
    async (suffix) => {
      const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
      await see(store, 'p', { a: 'FAILED', b: 'FAILED' }, 50);
      const before = await store.transitions({});
      const own = path + suffix;
      const names = [own, join(directory.path, 'folder', '..', basename(own))];
      await mkdir(join(directory.path, 'folder'));
      if (existsSync(own)) {
        names.push(join(directory.path, 'symlink'));
        await symlink(own, join(directory.path, 'symlink'));
      }
      const refused = suffix === '' ? 'is the store itself' : `is the store's ${suffix} file`;
      for (const file of names) {
        await expect(backUp({ path, target: file, replace: true })).rejects.toThrow(
          `${file} ${refused}: choose another name`,
        );
      }
      await see(store, 'p', { a: 'RUNNING', b: 'FAILED' }, 60);
      expect(await store.transitions({})).toHaveLength(before.length + 1);
      await store.close();
    },
  );

  it('never replaces the files of a store that is opened through a symlink', async () => {
    const other = join(directory.path, 'link.db');
    await symlink(path, other);
    for (const file of [other, path, `${path}-wal`]) {
      await expect(backUp({ path: other, target: file, replace: true })).rejects.toThrow(
        'the store',
      );
    }
  });
});

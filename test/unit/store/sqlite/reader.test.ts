import {
  chmod,
  cp,
  mkdir,
  readdir,
  readFile,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { openReadable, openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startChild } from './child.ts';

const NOBODY = 65_534;

/** Runs `work` as a user who may not write everywhere, as root may. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

describe('a reader', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let path: string;

  beforeEach(async () => {
    directory = await temporaryDirectory();
    path = join(directory.path, 'store.db');
  });
  afterEach(async () => {
    await chmod(directory.path, 0o700);
    await directory[Symbol.asyncDispose]();
  });

  const open = () => openStore({ path, clock: systemClock, emit: () => {} });

  async function projectsOf(file = path) {
    const reader = await openReader({ path: file });
    const projects = await reader.projects();
    await reader.close();
    return projects;
  }

  it('reads while the daemon runs, including new commits', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    const reader = await openReader({ path });
    expect(await reader.projects()).toEqual(['p']);
    await store.configureProjects(['p', 'q'], 2);
    expect(await reader.projects()).toEqual(['p', 'q']);
    await store.close();
    expect(await reader.projects()).toEqual(['p', 'q']);
    await reader.close();
    expect(await projectsOf()).toEqual(['p', 'q']);
  });

  it('reads while a daemon in another process has the store open', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    await store.close();
    await using child = startChild('hold-store.ts', path);
    await child.lines.next();
    expect(await projectsOf()).toEqual(['p']);
  });

  it('reads without a daemon and leaves the file unchanged', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    await store.close();
    const before = await readFile(path);
    expect(await projectsOf()).toEqual(['p']);
    expect(await readFile(path)).toEqual(before);
    await (await open()).close();
  });

  it('reads commits that a crash left in the write-ahead log, and leaves them there', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    const crashed = join(directory.path, 'crashed');
    await mkdir(crashed);
    for (const name of ['store.db', 'store.db-wal']) {
      await cp(join(directory.path, name), join(crashed, name));
    }
    await store.close();
    const file = join(crashed, 'store.db');
    const before = [await readFile(file), await readFile(`${file}-wal`)];
    expect(await projectsOf(file)).toEqual(['p']);
    expect([await readFile(file), await readFile(`${file}-wal`)]).toEqual(before);
  });

  it('reads through a symlink', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    const link = join(directory.path, 'link.db');
    await symlink('store.db', link);
    expect(await projectsOf(link)).toEqual(['p']);
    await store.close();
  });

  it('reads a store in a directory without write permission', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    await store.close();
    await chmod(path, 0o444);
    await chmod(directory.path, 0o555);
    const before = await readdir(directory.path);
    await asNobody(async () => {
      expect(await projectsOf()).toEqual(['p']);
    });
    expect(await readdir(directory.path)).toEqual(before);
  });

  it('says why it cannot read a store of more than 2 GiB where it cannot write', async () => {
    await (await open()).close();
    await truncate(path, 2 ** 31);
    await chmod(path, 0o444);
    await chmod(directory.path, 0o555);
    await asNobody(async () => {
      await expect(projectsOf()).rejects.toThrow('store.db has more than 2 GiB');
    });
  });

  it('says why it cannot read a write-ahead log where nothing can be written', async () => {
    const store = await open();
    await store.configureProjects(['p'], 1);
    const crashed = join(directory.path, 'crashed.db');
    for (const suffix of ['', '-wal']) {
      await cp(path + suffix, crashed + suffix);
      await chmod(crashed + suffix, 0o444);
    }
    await store.close();
    await chmod(directory.path, 0o555);
    await asNobody(() =>
      expect(projectsOf(crashed)).rejects.toMatchObject({
        reason: 'io',
        message: expect.stringContaining('SQLite reads it only where it can write'),
      }),
    );
  });

  it('reads through a connection that rejects writes', async () => {
    await (await open()).close();
    const { db, close } = await openReadable(path);
    expect(() => db.exec('DELETE FROM project')).toThrow('attempt to write a readonly database');
    close();
  });

  it.each([
    ['no file', undefined],
    ['an empty file', ''],
  ])('reports %s as a store that does not exist yet', async (_name, content) => {
    if (content !== undefined) await writeFile(path, content);
    const before = await readdir(directory.path);
    await expect(openReader({ path })).rejects.toMatchObject({
      name: 'StoreError',
      reason: 'other',
      message: `there is no store at ${path}: the daemon creates it at its first start`,
    });
    await expect(openReader({ path: join(path, 'x') })).rejects.toMatchObject({
      name: 'StoreError',
    });
    expect(await readdir(directory.path)).toEqual(before);
  });

  it('rejects with a StoreError once it is closed', async () => {
    await (await open()).close();
    const reader = await openReader({ path });
    await reader.close();
    await expect(reader.snapshot()).rejects.toMatchObject({ name: 'StoreError' });
  });
});

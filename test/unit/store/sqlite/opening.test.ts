import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { connect } from '../../../../src/store/sqlite/connection.ts';
import {
  migrate,
  readMigrations,
  SCHEMA_VERSION,
} from '../../../../src/store/sqlite/sql/migrate.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { see } from './history.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

describe('an SQLite store', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  beforeEach(async () => {
    directory = await temporaryDirectory();
  });
  afterEach(() => directory[Symbol.asyncDispose]());

  const at = (...names: string[]) => join(directory.path, ...names);
  const open = (path: string, onCreated?: (path: string) => void) =>
    openStore({ path, clock: systemClock, emit: () => {}, ...(onCreated && { onCreated }) });
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

  it('creates missing directories with mode 0700 and leaves existing ones unchanged', async () => {
    await mkdir(at('there'), { mode: 0o755 });
    await (await open(at('there', 'new', 'deep', 'store.db'))).close();
    expect(await modeOf(at('there'))).toBe('755');
    expect(await modeOf(at('there', 'new'))).toBe('700');
    expect(await modeOf(at('there', 'new', 'deep'))).toBe('700');
  });

  it('creates every file with mode 0600', async () => {
    const store = await open(at('store.db'));
    await store.configureProjects(['p'], 1);
    expect((await readdir(directory.path)).toSorted()).toEqual([
      'store.db',
      'store.db-shm',
      'store.db-wal',
      'store.db.lock',
    ]);
    for (const name of await readdir(directory.path)) expect(await modeOf(at(name))).toBe('600');
    await store.close();
  });

  it('calls onCreated only when it is new', async () => {
    const onCreated = vi.fn<(path: string) => void>();
    await (await open(at('store.db'), onCreated)).close();
    await (await open(at('store.db'), onCreated)).close();
    expect(onCreated.mock.calls).toEqual([[at('store.db')]]);
  });

  it('treats an empty file as a new store', async () => {
    await writeFile(at('store.db'), '');
    const onCreated = vi.fn<(path: string) => void>();
    const store = await open(at('store.db'), onCreated);
    await store.configureProjects(['p'], 1);
    expect(onCreated).toHaveBeenCalledOnce();
    await store.close();
  });

  it('writes its application id and schema version to the file header', async () => {
    await (await open(at('store.db'))).close();
    const header = await readFile(at('store.db'));
    expect(header.toString('latin1', 68, 72)).toBe('EVWT');
    expect(header.readUInt32BE(60)).toBe(SCHEMA_VERSION);
  });

  it('leaves no write-ahead log after a clean close', async () => {
    const store = await open(at('store.db'));
    await store.configureProjects(['p'], 1);
    await store.close();
    expect((await readdir(directory.path)).toSorted()).toEqual(['store.db', 'store.db.lock']);
  });

  it('empties the write-ahead log when it closes while a reader is open', async () => {
    const store = await open(at('store.db'));
    const reader = await openReader({ path: at('store.db') });
    await store.configureProjects(['p'], 1);
    await store.close();
    expect((await store.size()).wal).toBe(0);
    expect(await reader.projects()).toEqual(['p']);
    await reader.close();
  });

  it('uses a write-ahead log even after a tool has disabled it', async () => {
    await (await open(at('store.db'))).close();
    const tool = new Database(at('store.db'));
    expect(tool.pragma('journal_mode = DELETE', { simple: true })).toBe('delete');
    tool.close();
    const store = await open(at('store.db'));
    const other = new Database(at('store.db'), { readonly: true });
    expect(other.pragma('journal_mode', { simple: true })).toBe('wal');
    other.close();
    await store.close();
  });

  it('is found through a link, and its files are beside what the link leads to', async () => {
    await writeFile(at('real.db'), '');
    await symlink('real.db', at('link.db'));
    const store = await open(at('link.db'));
    expect((await readdir(directory.path)).toSorted()).toEqual([
      'link.db',
      'real.db',
      'real.db-shm',
      'real.db-wal',
      'real.db.lock',
    ]);
    await store.close();
  });

  it('returns the sizes of its file and its log', async () => {
    const store = await open(at('store.db'));
    await store.configureProjects(['p'], 1);
    expect(await store.size()).toEqual({
      database: (await stat(at('store.db'))).size,
      wal: (await stat(at('store.db-wal'))).size,
    });
    await store.close();
    expect((await store.size()).wal).toBe(0);
  });

  it.each([
    ['a directory', 'folder', 'is not a file', 'other'],
    ['in a file', 'file/store.db', 'ENOTDIR', 'io'],
    ['in a circle of links', 'circle', 'ELOOP', 'io'],
    ['a link to nothing', 'dangling', 'does not exist: create that file', 'other'],
    ['a name that SQLite would change', 'store.db ', 'white space', 'other'],
  ])('rejects a path that is %s', async (_name, path, message, reason) => {
    await mkdir(at('folder'));
    await writeFile(at('file'), 'text');
    await symlink('circle', at('circle'));
    await symlink('new.db', at('dangling'));
    const before = await readdir(directory.path);
    await expect(open(at(path))).rejects.toMatchObject({
      name: 'StoreError',
      reason,
      message: expect.stringContaining(message),
    });
    expect(await readdir(directory.path)).toEqual(before);
  });

  it('upgrades every schema version so far', async () => {
    const migrations = await readMigrations();
    for (const version of migrations.keys()) {
      const path = at(`version-${version}.db`);
      const db = new Database(path);
      migrate(db, migrations.slice(0, version + 1));
      db.close();
      const store = await open(path);
      await store.configureProjects(['p'], 1);
      await see(store, 'p', { a: 'RUNNING' }, 10);
      await store.close();
      const reader = await openReader({ path });
      expect(await reader.statuses({})).toHaveLength(1);
      await reader.close();
    }
  });

  it('distrusts its schema, checks cell sizes, keeps its log and rejects writes to the schema', async () => {
    await (await open(at('store.db'))).close();
    const db = connect(at('store.db'), { readonly: false, busyTimeoutMs: 0 });
    expect(db.pragma('trusted_schema', { simple: true })).toBe(0);
    expect(db.pragma('cell_size_check', { simple: true })).toBe(1);
    expect(db.pragma('journal_mode = OFF', { simple: true })).toBe('wal');
    db.pragma('writable_schema = ON');
    expect(() => db.exec('DELETE FROM sqlite_schema')).toThrow('may not be modified');
    db.close();
  });
});

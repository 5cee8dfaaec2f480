import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { SCHEMA_VERSION } from '../../../../src/store/sqlite/sql/migrate.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** Files that are no store of evalwatch, and the expected error messages. */
const FOREIGN: readonly (readonly [
  name: string,
  make: (path: string) => void | Promise<void>,
  says: string,
])[] = [
  ['a text', (path) => writeFile(path, 'service:\n'.repeat(30)), 'not an SQLite database'],
  ['a short text', (path) => writeFile(path, 'hello'), 'not an SQLite database'],
  ['zeros', (path) => writeFile(path, Buffer.alloc(8192)), 'not an SQLite database'],
  ['a database without a mark', sql('CREATE TABLE t (a)'), 'another program'],
  ['another mark', sql('PRAGMA application_id = 7; PRAGMA user_version = 1'), 'another program'],
  ['a database that lost its tables', sql('CREATE TABLE t (a); DROP TABLE t'), 'another program'],
  ['a database whose tables are in its log only', inLogOnly, 'another program'],
  [
    'a newer store',
    sql(`PRAGMA application_id = 1163286356; CREATE TABLE t (a); PRAGMA user_version = 99`),
    `has schema version 99, this evalwatch supports ${SCHEMA_VERSION}`,
  ],
  [
    'a newer store with a write-ahead log',
    sql(`PRAGMA journal_mode = WAL; PRAGMA application_id = 1163286356; PRAGMA user_version = 99`),
    `has schema version 99, this evalwatch supports ${SCHEMA_VERSION}`,
  ],
];

describe('a file that this version cannot open as a store', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  beforeEach(async () => {
    directory = await temporaryDirectory();
  });
  afterEach(() => directory[Symbol.asyncDispose]());

  it.each(FOREIGN)('%s is rejected by daemon and reader, and left unchanged', async (...file) => {
    const [, make, says] = file;
    const path = join(directory.path, 'file');
    await make(path);
    const before = await contents();
    const openStore = () => openStoreInProcess({ path, clock: systemClock, emit: () => {} });
    for (const open of [openStore, () => openReader({ path })]) {
      await expect(open()).rejects.toMatchObject({
        name: 'StoreError',
        message: expect.stringContaining(says),
      });
      expect(await contents()).toEqual(before);
    }
  });

  it('is rejected even if its path had a store before', async () => {
    const path = join(directory.path, 'file');
    await (await openStoreInProcess({ path, clock: systemClock, emit: () => {} })).close();
    await rm(path);
    sql('CREATE TABLE t (a)')(path);
    const before = await contents();
    await expect(openStoreInProcess({ path, clock: systemClock, emit: () => {} })).rejects.toThrow(
      'another program',
    );
    expect(await contents()).toEqual(before);
  });

  it('is rejected if its newer schema version is only in the write-ahead log', async () => {
    const path = join(directory.path, 'file');
    const origin = join(directory.path, 'origin');
    await (await openStoreInProcess({ path: origin, clock: systemClock, emit: () => {} })).close();
    const db = new Database(origin);
    db.pragma('user_version = 99');
    await copyFile(origin, path);
    await copyFile(`${origin}-wal`, `${path}-wal`);
    db.close();
    const says = `has schema version 99, this evalwatch supports ${SCHEMA_VERSION}`;
    await expect(openReader({ path })).rejects.toThrow(says);
    await expect(openStoreInProcess({ path, clock: systemClock, emit: () => {} })).rejects.toThrow(
      says,
    );
  });

  async function contents() {
    const names = (await readdir(directory.path)).toSorted();
    const bytes = await Promise.all(names.map((name) => readFile(join(directory.path, name))));
    return names.map((name, index) => [name, bytes[index]?.toString('base64')]);
  }
});

function sql(text: string) {
  return (path: string) => {
    const db = new Database(path);
    db.exec(text);
    db.close();
  };
}

/** Makes a database as a crash of its program leaves it. */
async function inLogOnly(path: string): Promise<void> {
  const db = new Database(`${path}.origin`);
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (a)');
  await copyFile(`${path}.origin`, path);
  await copyFile(`${path}.origin-wal`, `${path}-wal`);
  db.close();
}

import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate, readMigrations, SCHEMA_VERSION } from '../../../src/store/migrate.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('migrations', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let db: Database.Database;

  beforeEach(async () => {
    directory = await temporaryDirectory();
    db = new Database(join(directory.path, 'store.db'));
  });
  afterEach(async () => {
    db.close();
    await directory[Symbol.asyncDispose]();
  });

  const tables = () => db.prepare('SELECT name FROM sqlite_schema ORDER BY name').pluck().all();
  const version = () => db.pragma('user_version', { simple: true });

  it('are applied in order, each once', () => {
    migrate(db, ['CREATE TABLE a (x)']);
    migrate(db, ['CREATE TABLE a (x)', 'ALTER TABLE a RENAME TO b']);
    migrate(db, ['CREATE TABLE a (x)', 'ALTER TABLE a RENAME TO b', 'CREATE TABLE c (x)']);
    expect(tables()).toEqual(['b', 'c']);
    expect(version()).toBe(3);
  });

  it('one that fails leaves the version before it', () => {
    const failing = ['CREATE TABLE a (x)', 'CREATE TABLE b (x); INSERT INTO nowhere VALUES (1)'];
    expect(() => migrate(db, failing)).toThrow('no such table: nowhere');
    expect(tables()).toEqual(['a']);
    expect(version()).toBe(1);
    expect(db.inTransaction).toBe(false);
    migrate(db, ['CREATE TABLE a (x)', 'CREATE TABLE b (x)']);
    expect(version()).toBe(2);
  });

  it('the first one that fails leaves the file new', () => {
    expect(() => migrate(db, ['CREATE TABLE a (x); nonsense'])).toThrow('syntax error');
    expect([tables(), version(), db.pragma('application_id', { simple: true })]).toEqual([
      [],
      0,
      0,
    ]);
  });

  it('that are shipped make the version that this program knows', async () => {
    migrate(db, await readMigrations());
    expect(version()).toBe(SCHEMA_VERSION);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });
});

import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFailureCounts } from '../../../../src/store/sqlite/sql/failure-counts.ts';
import {
  migrate,
  readMigrations,
  SCHEMA_VERSION,
} from '../../../../src/store/sqlite/sql/migrate.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

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

  it('index the failures that there are', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 2));
    db.exec(`
      INSERT INTO project (project_key, id, configured_at) VALUES (1, 'p', 0);
      INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL);
      INSERT INTO transition SELECT value, 1, 'x', NULL, 100 * value, 'RUNNING',
          iif(value % 2, 'FAILED', 'COMPLETED')
        FROM json_each('[1, 2, 3, 4, 5]');`);
    migrate(db, migrations);
    const query = { since: 200, limitPerProject: 9 };
    expect(createFailureCounts(db)(query)).toEqual([{ project: 'p', count: 2 }]);
  });

  it('put the failures that were settled before into an order', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 1));
    db.exec(`
      INSERT INTO listing VALUES (1, NULL, 'prompt', 1, 0, NULL);
      INSERT INTO transition
        SELECT value, 1, 'x', NULL, 0, 'RUNNING', 'FAILED' FROM json_each('[1, 2, 3, 4]');
      INSERT INTO failure (transition_id, listing_key, settled_at)
        VALUES (1, 1, 700), (2, 1, NULL), (3, 1, 500), (4, 1, 500);`);
    migrate(db, migrations);
    const order = db.prepare('SELECT transition_id FROM settlement ORDER BY settlement_id').pluck();
    expect(order.all()).toEqual([3, 4, 1]);
  });
});

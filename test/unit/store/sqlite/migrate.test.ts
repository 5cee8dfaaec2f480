import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { causeOf } from '../../../../src/domain/cause.ts';
import { bucketOf, dayOf } from '../../../../src/domain/limits.ts';
import { UNFINISHED_STATUSES } from '../../../../src/domain/status.ts';
import { createDb } from '../../../../src/store/sql.ts';
import {
  migrate,
  readMigrations,
  SCHEMA_VERSION,
} from '../../../../src/store/sqlite/sql/migrate.ts';
import { createSelect, SqliteReads } from '../../../../src/store/sqlite/sql/reads.ts';
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
  const reads = new SqliteReads(
    createDb(async (_, text, parameters) => createSelect(db)(text, parameters)),
  );

  it('are applied in order, each once', () => {
    migrate(db, ['CREATE TABLE a (x)']);
    migrate(db, ['CREATE TABLE a (x)', 'ALTER TABLE a RENAME TO b']);
    migrate(db, ['CREATE TABLE a (x)', 'ALTER TABLE a RENAME TO b', 'CREATE TABLE c (x)']);
    expect(tables()).toEqual(['b', 'c']);
    expect(version()).toBe(3);
  });

  it('keep the previous version if one fails', () => {
    const failing = ['CREATE TABLE a (x)', 'CREATE TABLE b (x); INSERT INTO nowhere VALUES (1)'];
    migrate(db, failing.slice(0, 1));
    expect(() => migrate(db, failing)).toThrow('no such table: nowhere');
    expect(tables()).toEqual(['a']);
    expect(version()).toBe(1);
    expect(db.inTransaction).toBe(false);
    migrate(db, ['CREATE TABLE a (x)', 'CREATE TABLE b (x)']);
    expect(version()).toBe(2);
  });

  it('leave a new file empty if one of them fails', () => {
    const failing = ['CREATE TABLE a (x)', 'CREATE TABLE b (x); nonsense'];
    expect(() => migrate(db, failing)).toThrow('syntax error');
    expect([tables(), version(), db.pragma('application_id', { simple: true })]).toEqual([
      [],
      0,
      0,
    ]);
  });

  it('bring a new file to the current schema version', async () => {
    migrate(db, await readMigrations());
    expect(version()).toBe(SCHEMA_VERSION);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  it('index the failures that are already stored', async () => {
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
    expect(await reads.failureCounts(query)).toEqual([{ project: 'p', count: 2 }]);
  });

  it('count the durations of the stored transitions of prompts', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 3));
    const day = 86_400_000;
    db.exec(`
      INSERT INTO project (project_key, id, configured_at) VALUES (1, 'p', 0);
      INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL), (2, 1, 'dataset', 1, 0, NULL);
      INSERT INTO transition (listing_key, record_id, at, from_status, to_status) VALUES
        (1, 'in the baseline', ${day}, 'RUNNING', 'COMPLETED'),
        (1, 'x', ${day}, 'NEW', 'PENDING'),
        (1, 'y', ${day} + 1000, 'NEW', 'RUNNING'),
        (1, 'x', ${day} + 1000, 'PENDING', 'RUNNING'),
        (2, 'x', ${day} + 5000, 'NEW', 'RUNNING'),
        (2, 'x', ${day} + 9000, 'RUNNING', 'COMPLETED'),
        (1, 'y', ${day} + 61000, 'RUNNING', 'FAILED'),
        (1, 'x', ${day} + 61000, 'RUNNING', 'COMPLETED'),
        (1, 'y', ${day} + 71000, 'FAILED', 'RUNNING'),
        (1, 'y', 41 * ${day}, 'RUNNING', 'UNKNOWN'),
        (1, 'y', 42 * ${day}, 'UNKNOWN', 'PENDING'),
        (1, 'y', 42 * ${day} - 9, 'PENDING', 'RUNNING');`);
    migrate(db, migrations);
    const states = UNFINISHED_STATUSES.map((status) => ({ project: 'p', status }));
    expect(await reads.durations(states, 0)).toEqual([
      {
        ...states[0],
        counts: [{ day: 1, bucket: bucketOf(1000), count: 1 }],
      },
      {
        ...states[1],
        counts: [
          { day: 1, bucket: bucketOf(60_000), count: 2 },
          { day: 41, bucket: bucketOf(40 * day - 71_000), count: 1 },
        ],
      },
    ]);
  });

  it('put each duration into the same bucket as the daemon', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 3));
    const lengths = Array.from({ length: 400 }, (_, index) => Math.round(1.06 ** index));
    db.exec(`
      INSERT INTO project (project_key, id, configured_at) VALUES (1, 'p', 0);
      INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL);`);
    const insert = db.prepare(
      `INSERT INTO transition (listing_key, record_id, at, from_status, to_status)
       VALUES (1, ?, ?, ?, ?)`,
    );
    db.transaction(() => {
      for (const [index, ms] of lengths.entries()) {
        insert.run(`x${index}`, 0, 'NEW', 'RUNNING');
        insert.run(`x${index}`, ms, 'RUNNING', 'COMPLETED');
      }
    })();
    migrate(db, migrations);
    const [found] = await reads.durations([{ project: 'p', status: 'RUNNING' }], 0);
    const counts = Map.groupBy(lengths, (ms) => `${dayOf(ms)}/${bucketOf(ms)}`);
    expect(
      new Map(found?.counts.map(({ day, bucket, count }) => [`${day}/${bucket}`, count])),
    ).toEqual(new Map(Array.from(counts, ([key, { length }]) => [key, length])));
  });

  it('compute the causes of settled failures, and count them by error_id', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 4));
    db.exec(`
      INSERT INTO project (project_key, id, configured_at) VALUES (1, 'p', 0);
      INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL);
      INSERT INTO transition SELECT value, 1, 'x', NULL, 100, 'RUNNING', 'FAILED'
        FROM json_each('[1, 2, 3, 4]');
      INSERT INTO failure (transition_id, listing_key, settled_at, error_id, error_msg, reason) VALUES
        (1, 1, 700, 'E', 'took 1 s', NULL), (2, 1, NULL, NULL, NULL, NULL),
        (3, 1, 500, 'E', 'took 3 s', NULL), (4, 1, 600, NULL, NULL, 'not_found');
      INSERT INTO settlement (transition_id) VALUES (3), (4), (1);`);
    migrate(db, migrations);
    const causes = db.prepare('SELECT cause_id FROM failure ORDER BY transition_id').pluck().all();
    const took = causeOf({ error_id: 'E', error_msg: 'took 9 s' }).id;
    expect(causes).toEqual([took, null, took, causeOf(undefined).id]);
    const totals = db.prepare('SELECT * FROM error_total ORDER BY label').raw().all();
    expect(totals).toEqual([
      [1, 'E', 2, 500, 700],
      [1, 'none', 1, 600, 600],
    ]);
  });

  it('compute causes again, and let failures be found by the id of version 0.2.0, too', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 5));
    db.exec(`
      INSERT INTO project (project_key, id, configured_at) VALUES (1, 'p', 0);
      INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL);
      INSERT INTO transition VALUES (1, 1, 'x', NULL, 100, 'RUNNING', 'FAILED');
      INSERT INTO failure (transition_id, listing_key, settled_at, error_msg, cause)
        VALUES (1, 1, 700, 'took 5 s', '1842023dd3c6ad55');
      INSERT INTO settlement (transition_id) VALUES (1);`);
    migrate(db, migrations);
    const now = causeOf({ error_id: null, error_msg: 'took 9 s' }).id;
    for (const cause of [now, '1842023dd3c6ad55']) {
      expect(await reads.failures({ cause })).toMatchObject([{ transitionId: 1, cause: now }]);
    }
    expect(await reads.failures({ cause: 'ffffffffffffffff' })).toEqual([]);
  });

  it('order the failures that are already settled by their settlement time', async () => {
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

  it('give the tables of schema version 6 their later shape', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 6));
    db.exec(`
      INSERT INTO project (project_key, id, configured_at, removed_at, version, up, consecutive_failures, reason,
          last_poll_at, last_success_at, steady_since)
        VALUES (2, 'p', 1, NULL, 9, 0, 3, 'timeout', 70, 60, 50), (3, 'empty', 5, 6, 0, 0, 0, NULL, NULL, NULL, NULL);
      INSERT INTO listing VALUES
        (4, 2, 'prompt', 1, 2, 40), (5, 2, 'dataset', 1, 0, NULL), (6, NULL, 'prompt', 1, 0, NULL);
      INSERT INTO record VALUES
        (4, 'a', 'RUNNING', NULL, 'A', 'today', 10, 0, 0), (4, 'b', 'RUNNING', NULL, NULL, NULL, 8, 1, 0),
        (4, 'c', 'FAILED', NULL, NULL, NULL, 40, 0, 0), (4, 'd', 'PENDING', NULL, NULL, NULL, 1, 3, 1),
        (5, 'a', 'UNKNOWN', 'on hold', NULL, NULL, 7, 0, 0), (6, 'a', 'RUNNING', NULL, NULL, NULL, 1, 0, 0);
      INSERT INTO transition VALUES
        (11, 4, 'c', 'C', 30, 'NEW', 'RUNNING'), (12, 4, 'c', 'C', 40, 'RUNNING', 'FAILED'),
        (13, 6, 'a', NULL, 5, 'RUNNING', 'FAILED'), (20, 4, 'x', NULL, 1, 'NEW', 'RUNNING');
      DELETE FROM transition WHERE transition_id = 20;
      INSERT INTO transition_total VALUES (4, 'NEW', 'RUNNING', 5), (4, 'RUNNING', 'FAILED', 2);
      INSERT INTO failure VALUES
        (12, 4, 2, 1, 41, 42, 43, NULL, NULL, NULL, 0, NULL, NULL, NULL),
        (13, 6, 0, 0, NULL, NULL, 0, 44, 'E', 'message', 1, NULL, 'one', 'two');
      INSERT INTO settlement VALUES (31, 13), (35, 12);
      DELETE FROM settlement WHERE settlement_id = 35;
      INSERT INTO prompt_duration VALUES (4, 'RUNNING', 1, 2, 3);
      INSERT INTO error_total VALUES (4, 'E', 6, 7, 8);`);
    migrate(db, migrations);

    const rows = (table: string) => db.prepare(`SELECT * FROM ${table}`).raw().all();
    const [p, empty] = db
      .prepare<[], Readonly<Record<string, string>>>('SELECT * FROM project ORDER BY id DESC')
      .all();
    expect(p).toMatchObject({ project_key: 2, id: 'p', configured_at: 1, removed_at: null, up: 0 });
    expect(p).toMatchObject({ consecutive_failures: 3, reason: 'timeout', steady_since: 50 });
    expect(p).toMatchObject({ last_poll_at: 70, last_success_at: 60 });
    expect(JSON.parse(p?.['prompts'] ?? '')).toEqual({
      baselined: true,
      counts: { RUNNING: 2, FAILED: 1 },
      missing: 1,
      gone: 2,
      failedAt: 40,
      oldest: { RUNNING: 8 },
      totals: [
        ['NEW', 'RUNNING', 5],
        ['RUNNING', 'FAILED', 2],
      ],
    });
    expect(JSON.parse(p?.['datasets'] ?? '')).toMatchObject({ counts: { UNKNOWN: 1 }, oldest: {} });
    expect(empty).toMatchObject({ project_key: 3, removed_at: 6, prompts: '{}', datasets: '{}' });
    expect(p?.['token']).not.toBe(empty?.['token']);
    expect(rows('waste')).toEqual([[9]]);
    const records = [
      [2, 'dataset', 'a', null, 7, 0, 0, 'UNKNOWN', 'on hold', null],
      [2, 'prompt', 'a', 'A', 10, 0, 0, 'RUNNING', null, 'today'],
      [2, 'prompt', 'b', null, 8, 1, 0, 'RUNNING', null, null],
      [2, 'prompt', 'c', null, 40, 0, 0, 'FAILED', null, null],
      [2, 'prompt', 'd', null, 1, 3, 1, 'PENDING', null, null],
      [9, 'prompt', 'a', null, 1, 0, 0, 'RUNNING', null, null],
    ];
    expect(rows('record')).toEqual(records.map((row) => [...row, null, null, null]));
    expect(rows('transition')).toEqual([
      [11, 2, 30, null, 'prompt', 'NEW', 'RUNNING', 'c', 'C'],
      [12, 2, 40, null, 'prompt', 'RUNNING', 'FAILED', 'c', 'C'],
      [13, 9, 5, null, 'prompt', 'RUNNING', 'FAILED', 'a', null],
    ]);
    expect(rows('failure')).toEqual([
      [12, 2, 2, 1, 41, 42, 43, null, null, null, null, 0, null, null],
      [13, 9, 0, 0, null, null, 0, 44, 'one', 'two', 'E', 1, null, 'message'],
    ]);
    expect(rows('settlement')).toEqual([[31, 13]]);
    expect(rows('prompt_duration')).toEqual([[2, 'RUNNING', 1, 2, 3]]);
    expect(rows('error_total')).toEqual([[2, 'E', 6, 7, 8]]);
    // No number is given twice.
    expect(
      new Map(
        db.prepare<[], [string, number]>('SELECT name, seq FROM sqlite_sequence').raw().all(),
      ),
    ).toEqual(
      new Map([
        ['project', 9],
        ['transition', 20],
        ['settlement', 35],
      ]),
    );
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  it('keep the rows of schema version 7', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 7));
    db.exec(`
      INSERT INTO project (project_key, id, configured_at, token) VALUES (2, 'p', 1, 't');
      INSERT INTO transition (project_key, at, kind, from_status, to_status, record_id)
        VALUES (2, 30, 'prompt', 'RUNNING', 'COMPLETED', 'c');`);
    const rows = () =>
      db.prepare('SELECT * FROM project JOIN transition USING (project_key)').all();
    const before = rows();
    migrate(db, migrations);
    expect(rows()).toEqual(before);
    const known = 'SELECT count(*) FROM receiver, told, message';
    expect(db.prepare(known).pluck().get()).toBe(0);
  });

  it('keep the rows of schema version 8, whose records have no labels', async () => {
    const migrations = await readMigrations();
    migrate(db, migrations.slice(0, 8));
    db.exec(`INSERT INTO record (project_key, kind, id, since, missing, gone, status)
      VALUES (2, 'prompt', 'x', 7, 1, 0, 'RUNNING')`);
    const before = db.prepare<[], object>('SELECT * FROM record').all();
    migrate(db, migrations);
    const none = { experiment: null, dataset: null, metric: null };
    expect(db.prepare('SELECT * FROM record').all()).toEqual(
      before.map((row) => ({ ...row, ...none })),
    );
  });
});

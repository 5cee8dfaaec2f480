import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { causeOf } from '../../../src/domain/cause.ts';
import { bucketOf } from '../../../src/domain/limits.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/postgres/sql/migrate.ts';
import { PostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { readUrl } from '../../../src/store/postgres/url.ts';
import { pollItems } from '../../support/experiments.ts';
import { describePostgres } from '../../support/postgres-store.ts';

/** Trigger that sleeps while an index is made, and records the limits of its session. */
const SLOW_INDEXES = `
  CREATE TABLE seen (statement_timeout text, check_interval text);
  CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_sleep(1.5);
    INSERT INTO public.seen VALUES (current_setting('statement_timeout'), current_setting('client_connection_check_interval'));
  END $$;
  CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION slow();`;
const TO_VERSION_8 = `
  DROP TABLE evalwatch.label, evalwatch.experiment, evalwatch.finish;
  ALTER TABLE evalwatch.record DROP COLUMN experiment, DROP COLUMN dataset, DROP COLUMN metric;
  UPDATE evalwatch.schema_version SET version = 8;`;
const TO_VERSION_7 = `${TO_VERSION_8}
  DROP TABLE evalwatch.receiver, evalwatch.told, evalwatch.message;
  UPDATE evalwatch.schema_version SET version = 7;`;
const TO_VERSION_6 = `${TO_VERSION_7}
  CREATE TABLE evalwatch.configuration ();
  CREATE SEQUENCE evalwatch.epoch;
  ALTER TABLE evalwatch.worker RENAME COLUMN configuration TO config_digest;
  ALTER TABLE evalwatch.project DROP COLUMN token, ADD COLUMN epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN version bigint NOT NULL DEFAULT 0;
  ALTER TABLE evalwatch.transition DROP COLUMN token, ADD COLUMN epoch bigint NOT NULL,
    ADD COLUMN version bigint NOT NULL;
  ALTER TABLE evalwatch.failure ADD COLUMN claimed_by text;
  ALTER TABLE evalwatch.error_total ADD COLUMN place smallint;
  UPDATE evalwatch.schema_version SET version = 6, compatible_from = 1;`;
const TO_VERSION_1 = `${TO_VERSION_6}
  DROP INDEX evalwatch.transition_failed;
  DROP TABLE evalwatch.prompt_duration;
  DROP TABLE evalwatch.error_total;
  DROP TABLE evalwatch.configuration;
  DROP INDEX evalwatch.failure_cause, evalwatch.failure_cause_id;
  ALTER TABLE evalwatch.failure DROP COLUMN cause, DROP COLUMN cause_id;
  ALTER TABLE evalwatch.project DROP COLUMN steady_since;
  UPDATE evalwatch.schema_version SET version = 1`;
const INDEX = `SELECT indexdef FROM pg_indexes WHERE indexname = 'transition_failed'`;
/** An index that was dropped and created again has another oid; a rebuilt one has another file. */
const INDEX_ITSELF = `SELECT oid, pg_relation_filenode(oid) AS file FROM pg_class WHERE relname = 'transition_failed'`;
const VERSION = 'SELECT version FROM evalwatch.schema_version';

describePostgres('the upgrade of a PostgreSQL store', (create) => {
  /** Opens a database whose statements have 500 ms. */
  async function open(url: string, signal?: AbortSignal) {
    const settings = await readUrl(url);
    const database = new PostgresDatabase({
      clock: systemClock,
      settings,
      connections: 1,
      timeoutMs: 500,
      ...(signal && { signal }),
    });
    return Object.assign(database, {
      migrate: () => migrate(database),
      [Symbol.asyncDispose]: () => database.close(),
    });
  }

  /** Makes a store of schema version 1. */
  async function makeOld() {
    const db = await create();
    await using worker = await open(db.url);
    await worker.migrate();
    const [index] = await db.query(INDEX);
    await db.query(TO_VERSION_1);
    return { ...db, index };
  }

  it('is exempt from the statement timeout, as is a worker that waits for it', async () => {
    await using db = await makeOld();
    await db.query(SLOW_INDEXES);
    await using one = await open(db.url);
    await using other = await open(db.url);

    await Promise.all([one.migrate(), other.migrate()]);

    expect(await db.query(VERSION)).toEqual([{ version: 9 }]);
    expect(await db.query(INDEX)).toHaveLength(1);
    expect(await db.query('SELECT DISTINCT * FROM seen')).toEqual([
      { statement_timeout: '1d', check_interval: '10s' },
    ]);
  });

  it('computes the causes of settled failures, and counts them by error_id', async () => {
    await using db = await makeOld();
    await db.query(
      `INSERT INTO evalwatch.project (project_key, id, configured_at) VALUES (1, 'p', 0);
       INSERT INTO evalwatch.transition
         (transition_id, project_key, epoch, version, kind, record_id, at, from_status, to_status)
       SELECT n, 1, 0, 0, 'prompt', 'x' || n, 100, 'RUNNING', 'FAILED' FROM generate_series(1, 30) n;
       INSERT INTO evalwatch.failure (transition_id, project_key, settled_at, error_id, error_msg, reason)
       SELECT n, 1, 1000 + n, 'E' || n % 25, 'took ' || n || ' s', NULL FROM generate_series(1, 28) n;
       INSERT INTO evalwatch.failure (transition_id, project_key, settled_at, reason)
       VALUES (29, 1, 2000, 'not_found'), (30, 1, NULL, NULL);
       INSERT INTO evalwatch.settlement (transition_id) SELECT generate_series(1, 29);`,
    );
    await using worker = await open(db.url);
    await worker.migrate();
    const causes = 'SELECT cause_id FROM evalwatch.failure ORDER BY transition_id';
    const found = (await db.query(causes)) as { cause_id: string | null }[];
    const cause = (id: number) =>
      causeOf({ error_id: `E${id % 25}`, error_msg: `took ${id} s` }).id;
    expect(found.map((row) => row.cause_id)).toEqual([
      ...Array.from({ length: 28 }, (_, index) => cause(index + 1)),
      causeOf(undefined).id,
      null,
    ]);
    const totals = `SELECT label, count::integer, first_seen_at::integer AS first, last_seen_at::integer AS last
      FROM evalwatch.error_total WHERE label IN ('E1', 'E20', 'none', 'other') ORDER BY 1`;
    expect(await db.query(totals)).toEqual([
      { label: 'E1', count: 2, first: 1001, last: 1026 },
      { label: 'E20', count: 1, first: 1020, last: 1020 },
      { label: 'none', count: 1, first: 2000, last: 2000 },
      { label: 'other', count: 5, first: 1021, last: 1025 },
    ]);
  });

  it('computes causes again, and finds failures by the id of version 0.2.0, too', async () => {
    await using db = await makeOld();
    await using worker = await open(db.url);
    await worker.migrate();
    await db.query(
      `${TO_VERSION_6}
       DROP INDEX evalwatch.failure_cause_id;
       ALTER TABLE evalwatch.failure DROP COLUMN cause_id;
       UPDATE evalwatch.schema_version SET version = 5;
       INSERT INTO evalwatch.project (project_key, id, configured_at) VALUES (1, 'p', 0);
       INSERT INTO evalwatch.transition
         (transition_id, project_key, epoch, version, kind, record_id, at, from_status, to_status)
       VALUES (1, 1, 0, 0, 'prompt', 'x', 100, 'RUNNING', 'FAILED');
       INSERT INTO evalwatch.failure (transition_id, project_key, settled_at, error_msg, cause)
       VALUES (1, 1, 1000, 'took 5 s', '1842023dd3c6ad55');
       INSERT INTO evalwatch.settlement (transition_id) VALUES (1);`,
    );
    await worker.migrate();
    const rows = new PostgresReader(worker, systemClock);
    const now = causeOf({ error_id: null, error_msg: 'took 9 s' }).id;
    for (const cause of [now, '1842023dd3c6ad55']) {
      expect(await rows.failures({ cause })).toMatchObject([{ transitionId: 1, cause: now }]);
    }
    expect(await rows.failures({ cause: 'ffffffffffffffff' })).toEqual([]);
  });

  it('to version 7 gives each project a token, and leaves a worker of version 6 no lease', async () => {
    await using db = await create();
    await using worker = await open(db.url);
    await worker.migrate();
    await db.query(
      `${TO_VERSION_6}
       INSERT INTO evalwatch.project (id, configured_at, owner) VALUES ('p', 0, 'old'), ('q', 0, 'old');
       INSERT INTO evalwatch.worker VALUES ('old', now() + interval '1 hour', '0.2.0', 'd');`,
    );
    await worker.migrate();
    const projects =
      'SELECT count(DISTINCT token)::integer AS tokens, max(owner) AS owner FROM evalwatch.project';
    expect(await db.query(projects)).toEqual([{ tokens: 2, owner: null }]);
    expect(await db.query('SELECT FROM evalwatch.worker')).toEqual([]);
    const schema = 'SELECT version, compatible_from FROM evalwatch.schema_version';
    expect(await db.query(schema)).toEqual([{ version: 9, compatible_from: 9 }]);
    // Of version 6: the renewal of a lease.
    const renewal =
      "UPDATE evalwatch.worker SET expires_at = now(), config_digest = 'd' WHERE worker = 'old'";
    await expect(db.query(renewal)).rejects.toThrow('config_digest');
  });

  it('to version 8 lets a worker of version 7 go on', async () => {
    await using db = await create();
    await using old = await db.owner(['p']);
    await db.query(TO_VERSION_7);
    await using worker = await open(db.url);
    await worker.migrate();
    const schema = 'SELECT version, compatible_from FROM evalwatch.schema_version';
    expect(await db.query(schema)).toEqual([{ version: 9, compatible_from: 9 }]);
    expect(await old.see('p', { x: 'COMPLETED' }, 2000)).toHaveLength(1);
    await old.store.notifications.subscribe({ name: 'chat', on: ['completed'] }, 1);
    expect(await db.query('SELECT receiver, since::integer FROM evalwatch.receiver')).toEqual([
      { receiver: 'chat', since: 1 },
    ]);
  });

  it('to version 9 keeps records, without labels until they are listed', async () => {
    await using db = await create();
    await using owner = await db.owner(['p']);
    await owner.see('p', { x: 'RUNNING', y: 'FAILED' }, 7);
    await db.query(TO_VERSION_8);
    await using worker = await open(db.url);
    await worker.migrate();
    const known = async () => {
      const { listings } = await owner.store.loadKnown('p', ['prompt']);
      const records = [...(listings.get('prompt')?.records.values() ?? [])];
      return records.map(({ id, status, experiment }) => [id, status, experiment]);
    };
    expect(await known()).toEqual([
      ['x', 'RUNNING', undefined],
      ['y', 'FAILED', undefined],
    ]);
    const items = { x: ['RUNNING', 'e'], y: ['FAILED', 'e'] } as const;
    expect(await pollItems(owner.store, 'p', items, 8)).toEqual({ transitions: [], finishes: [] });
    expect(await owner.store.experiments({})).toMatchObject([
      { experiment: 'e', counts: { RUNNING: 1, FAILED: 1 }, movedAt: undefined },
    ]);
  });

  it('counts durations of prompts in PENDING and RUNNING from the stored transitions', async () => {
    await using db = await makeOld();
    const day = 86_400_000;
    await db.query(
      `INSERT INTO evalwatch.project (project_key, id, configured_at) VALUES (1, 'p', 0);
       INSERT INTO evalwatch.transition
         (project_key, epoch, version, kind, record_id, at, from_status, to_status)
       SELECT 1, 0, 0, * FROM (VALUES
         ('prompt', 'in the baseline', ${day}, 'RUNNING', 'COMPLETED'),
         ('prompt', 'x', ${day}, 'NEW', 'PENDING'),
         ('prompt', 'x', ${day} + 900, 'PENDING', 'RUNNING'),
         ('dataset', 'x', ${day} + 5000, 'NEW', 'RUNNING'),
         ('dataset', 'x', ${day} + 9000, 'RUNNING', 'COMPLETED'),
         ('prompt', 'x', ${day} + 60900, 'RUNNING', 'FAILED'),
         ('prompt', 'x', ${day} + 70900, 'FAILED', 'RUNNING'),
         ('prompt', 'x', ${day} + 130900, 'RUNNING', 'UNKNOWN')) t`,
    );
    await using worker = await open(db.url);
    await worker.migrate();
    const counted = 'SELECT status, day, bucket, count FROM evalwatch.prompt_duration ORDER BY 1';
    expect(await db.query(counted)).toEqual([
      { status: 'PENDING', day: 1, bucket: 0, count: '1' },
      { status: 'RUNNING', day: 1, bucket: bucketOf(60_000), count: '2' },
    ]);
  });

  it('fails with its first error even if its connection is lost before it is rolled back', async () => {
    await using db = await create();
    await using database = await open(db.url);
    const failing = database.transaction(async (run) => {
      const [backend] = await run<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
      try {
        await run('SELECT 1 / 0');
      } catch (error) {
        await db.query('SELECT pg_terminate_backend($1, 60000)', [backend?.pid]);
        throw error;
      }
    });
    await expect(failing).rejects.toThrow('22012');
    expect(await database.query({ text: 'SELECT 1 AS one' })).toEqual([{ one: 1 }]);
  });

  it('restores the statement timeout of its session', async () => {
    await using db = await makeOld();
    await using database = await open(db.url);
    await database.migrate();
    const text = "SELECT current_setting('statement_timeout') AS limit";
    expect(await database.query({ text })).toEqual([{ limit: '1min' }]);
  });

  it('keeps an index that was created before with the statement in docs/scaling.md', async () => {
    await using db = await makeOld();
    const text = await readFile(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');
    const statement = /^CREATE INDEX CONCURRENTLY [^;]+;$/m.exec(text)?.[0];
    await db.query(statement ?? 'the page has no such statement');
    expect(await db.query(INDEX)).toEqual([db.index]);
    const before = await db.query(INDEX_ITSELF);
    await using worker = await open(db.url);

    await worker.migrate();

    expect(await db.query(VERSION)).toEqual([{ version: 9 }]);
    expect(await db.query(INDEX_ITSELF)).toEqual(before);
  });

  it('ends if its worker is aborted, and is completed by the next worker', async () => {
    await using db = await makeOld();
    const blocking = await db.begin('LOCK evalwatch.transition');
    const gone = new AbortController();
    await using database = await open(db.url, gone.signal);
    const migrating = database.migrate().catch((error: unknown) => error);
    const waiting =
      "SELECT FROM pg_stat_activity WHERE query LIKE '%CREATE INDEX IF%' AND wait_event_type = 'Lock'";
    await db.server.untilRows('postgres', waiting, (rows) => rows > 0);

    gone.abort();

    expect(await migrating).toMatchObject({ name: 'StoreError', reason: 'io' });
    await db.server.untilRows('postgres', waiting, (rows) => rows === 0);
    await blocking.end();
    await using next = await open(db.url);
    await next.migrate();
    expect(await db.query(VERSION)).toEqual([{ version: 9 }]);
  });
});

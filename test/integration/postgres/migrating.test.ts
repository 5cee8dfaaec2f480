import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { causeOf } from '../../../src/domain/cause.ts';
import { bucketOf } from '../../../src/domain/durations.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/postgres/sql/migrate.ts';
import { readUrl } from '../../../src/store/postgres/url.ts';
import { startPostgres } from '../../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';

/** Trigger that sleeps while an index is made, and records the limits of its session. */
const SLOW_INDEXES = `
  CREATE TABLE seen (statement_timeout text, check_interval text);
  CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_sleep(1.5);
    INSERT INTO public.seen VALUES (current_setting('statement_timeout'), current_setting('client_connection_check_interval'));
  END $$;
  CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION slow();`;
const TO_VERSION_1 = `
  DROP INDEX evalwatch.transition_failed;
  DROP TABLE evalwatch.prompt_duration;
  DROP TABLE evalwatch.error_total;
  DROP TABLE evalwatch.configuration;
  DROP INDEX evalwatch.failure_cause;
  ALTER TABLE evalwatch.failure DROP COLUMN cause;
  ALTER TABLE evalwatch.project DROP COLUMN steady_since;
  UPDATE evalwatch.schema_version SET version = 1`;
const INDEX = `SELECT indexdef FROM pg_indexes WHERE indexname = 'transition_failed'`;
/** An index that was dropped and created again has another oid; a rebuilt one has another file. */
const INDEX_ITSELF = `SELECT oid, pg_relation_filenode(oid) AS file FROM pg_class WHERE relname = 'transition_failed'`;
const VERSION = 'SELECT version FROM evalwatch.schema_version';

describe.skipIf(postgresPrograms() === undefined)('the upgrade of a PostgreSQL store', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function open(url: string) {
    const settings = await readUrl(url);
    const database = openDatabase({ clock: systemClock, settings, connections: 1, timeoutMs: 500 });
    return { migrate: () => migrate(database), [Symbol.asyncDispose]: () => database.close() };
  }

  /** Makes a store of schema version 1. */
  async function makeOld() {
    const { url, name } = await server.createDatabase();
    await using worker = await open(url);
    await worker.migrate();
    const [index] = await server.query(name, INDEX);
    await server.query(name, TO_VERSION_1);
    return { url, name, index };
  }

  it('is exempt from the statement timeout, as is a worker that waits for it', async () => {
    const { url, name } = await makeOld();
    await server.query(name, SLOW_INDEXES);
    await using one = await open(url);
    await using other = await open(url);

    await Promise.all([one.migrate(), other.migrate()]);

    expect(await server.query(name, VERSION)).toEqual([{ version: 5 }]);
    expect(await server.query(name, INDEX)).toHaveLength(1);
    expect(await server.query(name, 'SELECT DISTINCT * FROM seen')).toEqual([
      { statement_timeout: '1d', check_interval: '10s' },
    ]);
  });

  it('computes the causes of settled failures, and counts them by error_id', async () => {
    const { url, name } = await makeOld();
    await server.query(
      name,
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
    await using worker = await open(url);
    await worker.migrate();
    const causes = 'SELECT transition_id, cause FROM evalwatch.failure ORDER BY transition_id';
    const found = (await server.query(name, causes)) as { cause: string | null }[];
    const cause = (id: number) =>
      causeOf({ error_id: `E${id % 25}`, error_msg: `took ${id} s` }).id;
    expect(found.map((row) => row.cause)).toEqual([
      ...Array.from({ length: 28 }, (_, index) => cause(index + 1)),
      causeOf(undefined).id,
      null,
    ]);
    const totals = `SELECT label, count::integer, first_seen_at::integer AS first, last_seen_at::integer AS last
      FROM evalwatch.error_total WHERE label IN ('E1', 'E20', 'none', 'other') ORDER BY 1`;
    expect(await server.query(name, totals)).toEqual([
      { label: 'E1', count: 2, first: 1001, last: 1026 },
      { label: 'E20', count: 1, first: 1020, last: 1020 },
      { label: 'none', count: 1, first: 2000, last: 2000 },
      { label: 'other', count: 5, first: 1021, last: 1025 },
    ]);
  });

  it('counts durations of prompts in PENDING and RUNNING from the stored transitions', async () => {
    const { url, name } = await makeOld();
    const day = 86_400_000;
    await server.query(
      name,
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
    await using worker = await open(url);
    await worker.migrate();
    const counted = 'SELECT status, day, bucket, count FROM evalwatch.prompt_duration ORDER BY 1';
    expect(await server.query(name, counted)).toEqual([
      { status: 'PENDING', day: 1, bucket: 0, count: '1' },
      { status: 'RUNNING', day: 1, bucket: bucketOf(60_000), count: '2' },
    ]);
  });

  it('fails with its first error even if its connection is lost before it is rolled back', async () => {
    const { url, name } = await server.createDatabase();
    const settings = await readUrl(url);
    const database = openDatabase({ clock: systemClock, settings, connections: 1, timeoutMs: 500 });
    const failing = database.transaction(async (run) => {
      const [backend] = await run<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
      try {
        await run('SELECT 1 / 0');
      } catch (error) {
        await server.query(name, 'SELECT pg_terminate_backend($1, 60000)', [backend?.pid]);
        throw error;
      }
    });
    await expect(failing).rejects.toThrow('22012');
    expect(await database.query({ text: 'SELECT 1 AS one' })).toEqual([{ one: 1 }]);
    await database.close();
  });

  it('restores the statement timeout of its session', async () => {
    const { url } = await makeOld();
    const settings = await readUrl(url);
    const database = openDatabase({ clock: systemClock, settings, connections: 1, timeoutMs: 500 });
    await migrate(database);
    const text = "SELECT current_setting('statement_timeout') AS limit";
    expect(await database.query({ text })).toEqual([{ limit: '1min' }]);
    await database.close();
  });

  it('keeps an index that was created before with the statement in docs/scaling.md', async () => {
    const { url, name, index } = await makeOld();
    const text = await readFile(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');
    const statement = /^CREATE INDEX CONCURRENTLY [^;]+;$/m.exec(text)?.[0];
    await server.query(name, statement ?? 'the page has no such statement');
    expect(await server.query(name, INDEX)).toEqual([index]);
    const before = await server.query(name, INDEX_ITSELF);
    await using worker = await open(url);

    await worker.migrate();

    expect(await server.query(name, VERSION)).toEqual([{ version: 5 }]);
    expect(await server.query(name, INDEX_ITSELF)).toEqual(before);
  });

  it('ends if its worker is aborted, and is completed by the next worker', async () => {
    const { url, name } = await makeOld();
    const blocking = await server.connect(name);
    await blocking.query('BEGIN');
    await blocking.query('LOCK evalwatch.transition');
    const gone = new AbortController();
    const settings = await readUrl(url);
    const database = openDatabase({
      clock: systemClock,
      settings,
      connections: 1,
      timeoutMs: 500,
      signal: gone.signal,
    });
    const migrating = migrate(database).catch((error: unknown) => error);
    const waiting =
      "SELECT FROM pg_stat_activity WHERE query LIKE '%CREATE INDEX IF%' AND wait_event_type = 'Lock'";
    await server.untilRows('postgres', waiting, (rows) => rows > 0);

    gone.abort();

    expect(await migrating).toMatchObject({ name: 'StoreError', reason: 'io' });
    await database.close();
    await server.untilRows('postgres', waiting, (rows) => rows === 0);
    await blocking.end();
    await using next = await open(url);
    await next.migrate();
    expect(await server.query(name, VERSION)).toEqual([{ version: 5 }]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/postgres/database.ts';
import { readUrl } from '../../../src/postgres/url.ts';
import { startPostgres } from '../../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';
import { startWorker } from '../../support/postgres-store.ts';

describe.skipIf(postgresPrograms === undefined)('a PostgreSQL that does not answer', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it('is never asked what has waited for too long', async () => {
    const { url, name } = await server.createDatabase();
    await server.query(name, 'CREATE TABLE done ()');
    const database = openDatabase({
      settings: await readUrl(url),
      connections: 1,
      patienceMs: 1000,
    });
    const statements = ['SELECT pg_sleep(10)', ...Array(9).fill('INSERT INTO done DEFAULT VALUES')];

    const outcomes = await Promise.all(
      statements.map((text) => database.attempt({ text }, []).then(({ unknown }) => unknown)),
    );

    expect(outcomes).toEqual([true, ...Array(9).fill(false)]);
    expect(await server.query(name, 'SELECT FROM done')).toEqual([]);
    await database.query({ text: 'INSERT INTO done DEFAULT VALUES' });
    await database.close();
    expect(await server.query(name, 'SELECT FROM done')).toHaveLength(1);
  });

  it('does not hold up a stop', async () => {
    const { url, name } = await server.createDatabase();
    const worker = await startWorker(url);
    await worker.store.configureProjects(['p'], 1);
    await worker.claim(['p']);
    await worker.see('p', { x: 'RUNNING' });
    const blocking = await server.connect(name);
    await blocking.query('BEGIN');
    await blocking.query('LOCK evalwatch.project');
    const asked = Promise.allSettled([
      worker.see('p', { x: 'FAILED' }),
      worker.coordinator.owner('p'),
      ...Array.from({ length: 20 }, () => worker.store.projects()),
    ]);
    const started = performance.now();

    worker.giveUp();
    await worker.store.close();

    expect(performance.now() - started).toBeLessThan(12_000);
    for (const outcome of await asked) {
      expect(outcome).toMatchObject({ reason: { name: 'StoreError', reason: 'io' } });
    }
    await blocking.end();
  });

  it('but is back is told the last things after a stop has waited long enough', async () => {
    const { url } = await server.createDatabase();
    const worker = await startWorker(url);
    await worker.store.configureProjects(['p'], 1);
    await worker.claim(['p']);
    worker.giveUp();

    expect(await worker.see('p', { x: 'RUNNING' })).toEqual([]);
    await worker.coordinator.leave(worker.id);
    await worker.store.close();
  });
});

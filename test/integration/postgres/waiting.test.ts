import { expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { readUrl } from '../../../src/store/postgres/url.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { describePostgres, type TestDatabase } from '../../support/postgres-store.ts';

const ASK = { text: 'SELECT 1 AS answer' };

const tests = (open: () => Promise<TestDatabase>) => {
  it('never receives statements that timed out in the queue', async () => {
    await using db = await open();
    await db.query('CREATE TABLE done ()');
    const database = new PostgresDatabase({
      clock: systemClock,
      settings: await readUrl(db.url),
      connections: 1,
      timeoutMs: 1000,
    });
    const statements = ['SELECT pg_sleep(10)', ...Array(9).fill('INSERT INTO done DEFAULT VALUES')];

    const outcomes = await Promise.all(
      statements.map((text) => database.attempt({ text }, []).then(({ unknown }) => unknown)),
    );

    expect(outcomes).toEqual([true, ...Array(9).fill(false)]);
    expect(await db.query('SELECT FROM done')).toEqual([]);
    await database.query({ text: 'INSERT INTO done DEFAULT VALUES' });
    await database.close();
    expect(await db.query('SELECT FROM done')).toHaveLength(1);
  });

  it('does not delay a shutdown', async () => {
    await using db = await open();
    const worker = await db.owner(['p']);
    const other = await db.worker();
    await db.begin('LOCK evalwatch.project');
    const waiting = other.store.projects().then(
      () => 'answered',
      () => 'timed out',
    );
    await db.untilWaiting(1);
    const asked = Promise.allSettled([
      worker.see('p', { x: 'FAILED' }),
      worker.coordinator.owner('p'),
      ...Array.from({ length: 20 }, () => worker.store.projects()),
    ]);
    // Besides that one, all that fit on the connections of the store, and that of the coordinator.
    await db.untilWaiting(6);

    worker.giveUp();
    const closed = worker.store.close().then(() => 'closed');

    // The other worker's statement was sent before, and has the usual time.
    expect(await Promise.race([closed, waiting])).toBe('closed');
    for (const outcome of await asked) {
      expect(outcome).toMatchObject({ reason: { name: 'StoreError', reason: 'io' } });
    }
  });

  it('still receives the last commits after the shutdown deadline if it answers by then', async () => {
    await using db = await open();
    const worker = await db.owner(['p']);
    worker.giveUp();

    expect(await worker.see('p', { x: 'FAILED' })).toHaveLength(1);
    await worker.coordinator.leave(worker.id);
  });

  it('is asked on a new connection once an existing one has led nowhere for the time limit', async () => {
    await using db = await open();
    await using proxy = await startCuttingProxy(db.server.port);
    const url = db.url.replace(`:${db.server.port}/`, `:${proxy.port}/`);
    const database = new PostgresDatabase({
      clock: systemClock,
      settings: await readUrl(url),
      connections: 1,
      timeoutMs: 1000,
    });
    await database.query(ASK);

    proxy.silence();
    expect(await database.attempt(ASK, [])).toMatchObject({
      error: { reason: 'io' },
      unknown: true,
    });
    expect(await database.query(ASK)).toEqual([{ answer: 1 }]);
    await database.close();
  });

  it('has a third of a lease to answer a beat, so that the next one is in time', async () => {
    await using db = await open();
    await using proxy = await startCuttingProxy(db.server.port);
    const url = db.url.replace(`:${db.server.port}/`, `:${proxy.port}/`);
    const worker = await db.owner(['p'], { url, leaseMs: 6000 });
    await worker.coordinator.renew(worker.identity);

    proxy.silence();
    const started = performance.now();
    await expect(worker.coordinator.renew(worker.identity)).rejects.toMatchObject({ reason: 'io' });

    expect(performance.now() - started).toBeLessThan(4000);
    expect(await worker.coordinator.renew(worker.identity)).toBeDefined();
  });
};

describePostgres('a PostgreSQL server that does not answer', tests, { concurrent: true });

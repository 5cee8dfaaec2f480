import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Clock, Timer } from '../../../src/monitor/ports/clock.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { readUrl } from '../../../src/store/postgres/url.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { startPostgres } from '../../support/postgres.ts';
import { describePostgres, healthAt, type TestDatabase } from '../../support/postgres-store.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const MIB = 1024 * 1024;
/** More bytes than the buffers of the connections hold. */
const LARGE = 16 * MIB;
/** Factor by which timers are faster, so that checks of a silent connection come sooner. */
const HURRY = 4;
const hurried: Clock = {
  ...systemClock,
  monotonic: () => performance.now() * HURRY,
  timeout: (ms, callback) => systemClock.timeout(ms / HURRY, callback),
};
const SERIAL = { concurrent: false };
/**
 * Number of bytes on a connection between two of its checks, so that some move even on a slow machine. More than half of
 * what the buffers can hold after everything has been sent.
 */
const CHECKED_EVERY = 3 * MIB;
const CHECK_EVERY_MS = 1500;
/** Number of checks without progress after which a statement is given up. */
const MAX_DENIALS = 2;

/** Creates a hurried clock that checks a silent connection by the bytes that pass on it. They wait for the check. */
function clockOfTraffic() {
  let left = CHECKED_EVERY;
  let check: (() => void) | undefined;
  let checks = 0;
  let isByTraffic = false;
  let ended = Promise.withResolvers<void>();
  const clock: Clock = {
    ...hurried,
    timeout: (ms, callback) => {
      if (!isByTraffic || ms !== CHECK_EVERY_MS) return hurried.timeout(ms, callback);
      // The previous check has ended.
      ended.resolve();
      left = CHECKED_EVERY;
      check = callback;
      const timer: Timer = {
        cancel: () => {
          if (check === callback) check = undefined;
        },
        unref: () => timer,
      };
      return timer;
    },
  };
  return {
    clock,
    checks: () => checks,
    start: () => {
      isByTraffic = true;
    },
    end: () => {
      isByTraffic = false;
      ended.resolve();
    },
    onPassed: async (bytes: number) => {
      left -= bytes;
      if (!isByTraffic || left > 0 || check === undefined) return;
      checks += 1;
      const callback = check;
      check = undefined;
      ended = Promise.withResolvers<void>();
      callback();
      await ended.promise;
    },
  };
}

async function startSecure() {
  await using directory = await temporaryDirectory();
  return await startPostgres({ certificate: makeCertificate(directory.path, 'server') });
}

const tests = (open: () => Promise<TestDatabase>) => {
  it('never receives statements that timed out in the queue', async () => {
    await using db = await open();
    await db.query('CREATE TABLE done ()');
    const database = openDatabase({
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

  it('receives statements on new connections if the existing ones go silent', async () => {
    await using db = await open();
    await using proxy = await startCuttingProxy(db.server.port);
    const url = db.url.replace(`:${db.server.port}/`, `:${proxy.port}/`);
    const worker = await db.owner(['p', 'q'], { url, clock: hurried });

    proxy.silence('everything');
    const [moved] = await Promise.all([
      worker.see('p', { x: 'FAILED' }),
      worker.coordinator.beat(worker.identity),
    ]);
    proxy.silence('answers');

    expect(moved).toMatchObject([{ id: 'x', to: 'FAILED' }]);
    const { version } = await worker.store.loadKnown('q', ['prompt']);
    proxy.silence('answers');
    const changes = { baseline: false, records: [], transitions: [], gone: [] };
    expect(
      await worker.store.commitPoll({
        project: 'q',
        at: 2000,
        health: healthAt(2000),
        version,
        listings: new Map([['prompt', changes]]),
      }),
    ).toEqual([]);
    // The commit was made exactly once.
    expect((await worker.store.loadKnown('q', ['prompt'])).version).toBe(version + 1);
    expect(worker.log.of('store.commit_refused')).toEqual([]);
  });

  it('is waited for, on the same connection, while it executes a statement', async () => {
    await using db = await open();
    const database = openDatabase({
      clock: hurried,
      settings: await readUrl(db.url),
      connections: 1,
      timeoutMs: 120_000,
    });
    const backend = { text: 'SELECT pg_backend_pid() AS pid' };
    const [before] = await database.query<{ readonly pid: number }>(backend);
    await db.query('CREATE TABLE busy ()');
    const blocking = await db.begin('LOCK busy');

    const [read] = await Promise.all([
      database.query({ text: 'SELECT count(*) AS count FROM busy' }),
      setTimeout(8000 / HURRY).then(() => blocking.query('COMMIT')),
    ]);

    expect(read).toEqual([{ count: 0 }]);
    expect(await database.query(backend)).toEqual([before]);
    await database.close();
  });

  // Serial, because sending this much holds up the process.
  describe.each(['', '?sslmode=require'])('over a slow connection (%s)', SERIAL, (parameters) => {
    const COUNT = { name: 'count', text: 'SELECT length($1::text) AS length' };
    const BACKEND = { text: 'SELECT pg_backend_pid() AS pid' };

    async function start(clock = hurried) {
      const db = await open();
      const proxy = await startCuttingProxy(db.server.port);
      const database = openDatabase({
        clock,
        settings: await readUrl(
          db.url.replace(`:${db.server.port}/`, `:${proxy.port}/`) + parameters,
        ),
        connections: 1,
        timeoutMs: 240_000,
      });
      database.keepPlans();
      // The statement is prepared now: the server shows it as under way only when all its parameters have arrived.
      await database.query(COUNT, ['']);
      return {
        database,
        proxy,
        [Symbol.asyncDispose]: async () => {
          await database.close();
          await proxy[Symbol.asyncDispose]();
          await db[Symbol.asyncDispose]();
        },
      };
    }

    it('receives a large statement without a new connection', { timeout: 300_000 }, async () => {
      const traffic = clockOfTraffic();
      await using given = await start(traffic.clock);
      const { database, proxy } = given;
      const before = await database.query(BACKEND);
      traffic.start();
      proxy.slow(6 * MIB, traffic.onPassed);

      expect(await database.query(COUNT, ['x'.repeat(LARGE)])).toEqual([{ length: LARGE }]);
      traffic.end();

      expect(traffic.checks()).toBeGreaterThan(MAX_DENIALS);
      expect(await database.query(BACKEND)).toEqual(before);
    });

    it('receives a statement on a new connection if the old one accepts no more data', async () => {
      await using given = await start();
      const { database, proxy } = given;
      const [before] = await database.query(BACKEND);
      proxy.slow(0);

      expect(await database.query(COUNT, ['x'.repeat(LARGE)])).toEqual([{ length: LARGE }]);

      expect(await database.query(BACKEND)).not.toEqual([before]);
    });
  });
};

describePostgres('a PostgreSQL server that does not answer', tests, {
  concurrent: true,
  start: startSecure,
});

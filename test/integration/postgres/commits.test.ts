import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { healthAt, startWorker } from '../../support/postgres-store.ts';
import { startPostgres } from '../../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';

describe.skipIf(postgresPrograms() === undefined)('commits to PostgreSQL', () => {
  let server: PostgresServer;
  let url: string;
  let database: string;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(async () => {
    ({ url, name: database } = await server.createDatabase());
  });

  /** Ends a lease, as time does. */
  const expire = (worker: string) =>
    server.query(database, 'UPDATE evalwatch.worker SET expires_at = now() WHERE worker = $1', [
      worker,
    ]);

  const WAITING = `SELECT pid FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  /** Waits until this many statements wait for a lock. */
  const waiting = (statements: number) =>
    server.untilRows(database, WAITING, (rows) => rows >= statements);

  const refusals = (log: Awaited<ReturnType<typeof startWorker>>['log']) =>
    log.of('store.commit_refused').map(({ project, reason }) => [project, reason]);
  const unchanged = (at: number) => ({
    project: 'p',
    at,
    health: healthAt(at),
    version: 0,
    listings: new Map(),
  });

  describe('of a project that another worker took over', () => {
    it('are rejected with the reason epoch, with or without changes', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' });
      await expire(first.id);
      expect(await second.claim(['p'])).toEqual(['p']);

      expect(await first.see('p', { x: 'FAILED' })).toBeUndefined();
      await first.store.commitPoll(unchanged(7777));
      await first.store.flush();

      expect(refusals(first.log)).toEqual([
        ['p', 'epoch'],
        ['p', 'epoch'],
      ]);
      expect(await second.store.transitions({})).toEqual([]);
      expect((await second.store.loadHealth('p')).lastPollAt).toBe(1000);
    });

    it('are rejected by their epoch even if the version is still the same', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' });
      await first.coordinator.release(first.id, ['p']);
      await second.claim(['p']);

      // The version is still the same; only the epoch differs.
      expect(await first.see('p', { x: 'FAILED' })).toBeUndefined();
      expect(await second.see('p', { x: 'FAILED' })).toMatchObject([{ id: 'x' }]);
      expect(refusals(first.log)).toEqual([['p', 'epoch']]);
    });

    it('are rejected after the project was deleted and configured again', async () => {
      await using first = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' });
      await first.store.configureProjects([], 2);
      await first.store.prune({ before: 3, firstDay: 0 });
      await first.store.configureProjects(['p'], 4);
      await using second = await startWorker(url);
      await second.claim(['p']);

      expect(await first.see('p', { x: 'FAILED' })).toBeUndefined();
      expect(await second.see('p', { x: 'FAILED' })).toEqual([]);
    });
  });

  describe('of an earlier ownership', () => {
    type Worker = Awaited<ReturnType<typeof startWorker>>;
    const flush = async ({ store }: Worker) => {
      await store.commitPoll(unchanged(2000));
      await store.flush();
    };
    const start = async () => {
      const worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      await worker.claim(['p']);
      await worker.see('p', { x: 'RUNNING' });
      return worker;
    };
    const block = async () => {
      const blocking = await server.connect(database);
      await blocking.query('BEGIN');
      await blocking.query(`UPDATE evalwatch.project SET epoch = nextval('evalwatch.epoch')`);
      return blocking;
    };

    it.each([
      ['with changes', (worker: Worker) => worker.see('p', { x: 'FAILED' }), 1],
      ['without changes', flush, 0],
    ] as const)('do not end the current ownership (%s)', async (_name, commit, counted) => {
      await using worker = await start();
      const blocking = await block();
      const committing = commit(worker);
      await waiting(1);
      worker.store.disown('p');
      worker.store.own('p', 4711);
      await blocking.query('COMMIT');
      await blocking.end();

      expect(await committing).toBeUndefined();
      const refused = worker.log.of('store.commit_refused');
      expect(refused.map(({ isFromEarlierOwnership }) => isFromEarlierOwnership)).toEqual(
        Array.from({ length: counted }, () => true),
      );
    });

    it.each([
      ['when they still wait', async ({ store }: Worker) => store.disown('p')],
      [
        'when they cannot be written',
        async (worker: Worker) => {
          const blocking = await block();
          const flushing = worker.store.flush().catch((error: unknown) => error);
          await waiting(1);
          worker.store.disown('p');
          await server.query(database, `SELECT pg_terminate_backend(pid) FROM (${WAITING}) w`);
          await blocking.query('ROLLBACK');
          await blocking.end();
          expect(await flushing).toMatchObject({ name: 'StoreError' });
        },
      ],
    ])('are dropped %s', async (_name, disown) => {
      await using worker = await start();
      await worker.store.commitPoll(unchanged(2000));
      await disown(worker);
      await worker.coordinator.release(worker.id, ['p']);
      await worker.claim(['p']);
      await worker.store.flush();

      expect(refusals(worker.log)).toEqual([]);
      expect((await worker.store.loadHealth('p')).lastPollAt).toBe(1000);
    });
  });

  it('of an old version are rejected with the reason version', async () => {
    await using worker = await startWorker(url);
    await worker.store.configureProjects(['p'], 1);
    await worker.claim(['p']);
    await worker.see('p', { x: 'RUNNING' });
    const listings = new Map([
      ['prompt' as const, { baseline: false, records: [], transitions: [], gone: [] }],
    ]);

    expect(await worker.store.commitPoll({ ...unchanged(1), listings })).toBeUndefined();
    expect(refusals(worker.log)).toEqual([['p', 'version']]);
  });

  describe('whose connection breaks', () => {
    const start = async () => {
      const proxy = await startCuttingProxy(server.port);
      const worker = await startWorker(url.replace(`:${server.port}/`, `:${proxy.port}/`));
      await worker.store.configureProjects(['p'], 1);
      await worker.claim(['p']);
      await worker.see('p', { x: 'RUNNING' });
      const { version, token, listings } = await worker.store.loadKnown('p', ['prompt']);
      const known = listings.get('prompt')?.records.get('x');
      if (known === undefined) throw new Error('not known');
      const moved = { id: 'x', name: 'n', from: 'RUNNING', to: 'FAILED', heldMs: 1 } as const;
      const changes = {
        baseline: false,
        records: [{ ...known, status: 'FAILED' as const }],
        transitions: [moved],
        gone: [],
      };
      const poll = {
        ...unchanged(2000),
        version,
        token,
        listings: new Map([['prompt' as const, changes]]),
      };
      return {
        proxy,
        worker,
        commit: () => worker.store.commitPoll(poll),
        [Symbol.asyncDispose]: async () => {
          await worker[Symbol.asyncDispose]();
          await proxy[Symbol.asyncDispose]();
        },
      };
    };

    it.each([
      ['after they were committed', 'loseAnswer'],
      ['before they reached the server', 'loseRequest'],
    ] as const)('are stored and returned once if it breaks %s', async (_name, trouble) => {
      await using given = await start();
      given.proxy[trouble]();

      expect(await given.commit()).toMatchObject([{ id: 'x', to: 'FAILED', transitionId: 1 }]);

      expect(await given.worker.store.transitions({})).toHaveLength(1);
      expect(given.worker.log.of('store.commit_failed')).toHaveLength(1);
      expect(await given.worker.see('p', { x: 'COMPLETED' })).toMatchObject([{ id: 'x' }]);
    });

    it('are stored and returned once if it breaks while the server executes them', async () => {
      await using given = await start();
      const blocking = await server.connect(database);
      await blocking.query('BEGIN');
      await blocking.query('SELECT FROM evalwatch.record FOR UPDATE');
      const committing = given.commit();
      await waiting(1);
      given.proxy.cut();
      // The query that checks the outcome waits for it.
      await waiting(2);
      await blocking.query('ROLLBACK');
      await blocking.end();

      expect(await committing).toMatchObject([{ id: 'x', to: 'FAILED', transitionId: 1 }]);
      expect(await given.worker.store.transitions({})).toHaveLength(1);
      expect(refusals(given.worker.log)).toEqual([]);
    });

    it('are not applied twice if the server receives the request late', async () => {
      await using given = await start();
      const late = given.proxy.delayRequest();
      expect(await given.commit()).toHaveLength(1);

      await late.deliver();

      expect(await given.worker.store.transitions({})).toHaveLength(1);
      expect((await given.worker.store.snapshot()).backlog.count).toBe(1);
    });

    it('are not applied late, once rejected, when their version becomes current again', async () => {
      await using given = await start();
      await server.query(database, 'UPDATE evalwatch.project SET version = version - 1');
      const late = given.proxy.delayRequest();
      expect(await given.commit()).toBeUndefined();
      expect(refusals(given.worker.log)).toEqual([['p', 'version']]);
      await server.query(database, 'UPDATE evalwatch.project SET version = version + 1');

      await late.deliver();

      expect(await given.worker.store.transitions({})).toEqual([]);
    });

    it('are stored and returned once even if another worker has taken the project over', async () => {
      await using given = await start();
      await using other = await startWorker(url);
      await server.query(
        database,
        `CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           UPDATE evalwatch.project SET owner = 'other', epoch = nextval('evalwatch.epoch'); RETURN NULL; END $$`,
      );
      await server.query(
        database,
        `CREATE CONSTRAINT TRIGGER taken AFTER INSERT ON evalwatch.failure
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION take()`,
      );
      given.proxy.loseAnswer();

      expect(await given.commit()).toMatchObject([{ id: 'x', to: 'FAILED' }]);
      expect(await other.store.transitions({})).toHaveLength(1);
    });

    it('are not mistaken for those of another worker with the same epoch after a failover', async () => {
      await using given = await start();
      await server.query(
        database,
        `UPDATE evalwatch.project SET owner = 'other', version = version + 1;
         INSERT INTO evalwatch.transition
           (project_key, at, epoch, version, kind, from_status, to_status, record_id)
         SELECT project_key, 1999, epoch, version, 'prompt', 'RUNNING', 'FAILED', 'x'
         FROM evalwatch.project`,
      );
      given.proxy.loseRequest();

      expect(await given.commit()).toBeUndefined();
      expect(refusals(given.worker.log)).toEqual([['p', 'epoch']]);
    });

    it('are confirmed once the database can be reached again', async () => {
      await using given = await start();
      given.proxy.loseAnswer();
      given.proxy.down();
      const committing = given.commit();
      await vi.waitFor(
        () => expect(given.worker.log.of('store.commit_failed').length).toBeGreaterThan(1),
        PATIENCE,
      );
      given.proxy.up();

      expect(await committing).toMatchObject([{ id: 'x', to: 'FAILED', transitionId: 1 }]);
      expect(await given.worker.store.transitions({})).toHaveLength(1);
    });

    it('fail at the shutdown deadline while the database cannot be reached', async () => {
      await using given = await start();
      given.proxy.loseAnswer();
      given.proxy.down();
      const committing = given.commit().catch((error: unknown) => error);
      given.worker.giveUp();

      expect(await committing).toMatchObject({ name: 'StoreError', reason: 'io' });
    });
  });

  describe('of a configuration whose connection breaks', () => {
    /** Number of requests of a configuration before the one that changes something. */
    const BEFORE_CHANGE = 1;
    const start = async () => {
      const proxy = await startCuttingProxy(server.port);
      const worker = await startWorker(url.replace(`:${server.port}/`, `:${proxy.port}/`));
      await worker.store.configureProjects(['p'], 1);
      const configured = async () => {
        const rows = await server.query(
          database,
          'SELECT id FROM evalwatch.project WHERE removed_at IS NULL ORDER BY id',
        );
        return rows.map(({ id }) => id);
      };
      return {
        proxy,
        worker,
        configured,
        [Symbol.asyncDispose]: async () => {
          await worker[Symbol.asyncDispose]();
          await proxy[Symbol.asyncDispose]();
        },
      };
    };

    it.each(['loseAnswer', 'loseRequest'] as const)(
      'are applied nevertheless (%s)',
      async (trouble) => {
        await using given = await start();
        given.proxy[trouble](BEFORE_CHANGE);

        await given.worker.store.configureProjects(['q'], 2);

        expect(await given.configured()).toEqual(['q']);
        expect(given.worker.log.of('store.commit_failed')).toHaveLength(1);
      },
    );

    it('do not undo a later change if they arrive late', async () => {
      await using given = await start();
      await using other = await startWorker(url);
      const late = given.proxy.delayRequest(BEFORE_CHANGE);
      await given.worker.store.configureProjects(['q'], 2);
      await other.store.configureProjects(['p', 'q', 'r'], 3);
      await late.deliver();
      expect(await given.configured()).toEqual(['p', 'q', 'r']);
    });

    it('do not block later changes if they arrive late after a failover', async () => {
      await using given = await start();
      await server.query(database, "SELECT setval('evalwatch.epoch', 1000)");
      const late = given.proxy.delayRequest(BEFORE_CHANGE);
      await given.worker.store.configureProjects(['q'], 2);
      await server.query(
        database,
        "SELECT setval('evalwatch.epoch', 10); UPDATE evalwatch.configuration SET epoch = 9",
      );
      await late.deliver();
      await given.worker.store.configureProjects(['r'], 3);
      expect(await given.configured()).toEqual(['r']);
    });

    it('fail as busy if newer changes precede them again and again', async () => {
      await using given = await start();
      await server.query(database, 'UPDATE evalwatch.configuration SET epoch = 1000000');
      await expect(given.worker.store.configureProjects(['q'], 2)).rejects.toMatchObject({
        name: 'StoreError',
        reason: 'busy',
        message: expect.not.stringContaining('may have changed already') as unknown,
      });
      expect(await given.configured()).toEqual(['p']);
    });

    it('wait until the database can be reached again', async () => {
      await using given = await start();
      given.proxy.loseAnswer(BEFORE_CHANGE);
      given.proxy.down();
      const configuring = given.worker.store.configureProjects(['q'], 2);
      await vi.waitFor(
        () => expect(given.worker.log.of('store.commit_failed').length).toBeGreaterThan(1),
        PATIENCE,
      );
      given.proxy.up();
      await configuring;
      expect(await given.configured()).toEqual(['q']);
    });

    it('fail without effect if no connection can be opened', async () => {
      await using given = await start();
      given.proxy.down();
      given.proxy.cut();
      // Afterwards no connection is left that looks alive.
      await expect(given.worker.store.projects()).rejects.toMatchObject({ reason: 'io' });
      await expect(given.worker.store.configureProjects(['q'], 2)).rejects.toMatchObject({
        name: 'StoreError',
        reason: 'io',
      });
      expect(await given.configured()).toEqual(['p']);
    });

    it('fail if the database rejects the retry, and warn that they may have been applied', async () => {
      await using given = await start();
      await server.query(
        database,
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
           AS 'BEGIN RAISE ''not allowed'' USING ERRCODE = ''42501''; END';
         CREATE TRIGGER refuse BEFORE UPDATE ON evalwatch.project EXECUTE FUNCTION refuse()`,
      );
      try {
        given.proxy.loseRequest(BEFORE_CHANGE);
        await expect(given.worker.store.configureProjects(['q'], 2)).rejects.toMatchObject({
          name: 'StoreError',
          reason: 'other',
          message:
            'the database of store.postgres_url_file or _env refused (42501: not allowed); the watched projects may have changed already: repeat this once the database accepts it',
        });
      } finally {
        await server.query(
          database,
          'DROP TRIGGER refuse ON evalwatch.project; DROP FUNCTION refuse',
        );
      }
      await given.worker.store.configureProjects(['q'], 3);
      expect(await given.configured()).toEqual(['q']);
    });

    it('fail at the shutdown deadline while the database cannot be reached', async () => {
      await using given = await start();
      given.proxy.loseAnswer(BEFORE_CHANGE);
      given.proxy.down();
      const configuring = given.worker.store.configureProjects(['q'], 2).catch((error) => error);
      given.worker.giveUp();
      expect(await configuring).toMatchObject({ name: 'StoreError', reason: 'io' });
    });
  });

  describe('of polls without changes', () => {
    it('are stored soon after, with the planned tick', async () => {
      await using worker = await startWorker(url);
      await using other = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      await worker.claim(['p']);
      worker.store.planTick('p', 4242);
      await worker.store.commitPoll(unchanged(5000));

      // Not read through the worker itself: its reads store waiting health first.
      await vi.waitFor(
        async () => expect((await other.store.loadHealth('p')).lastPollAt).toBe(5000),
        PATIENCE,
      );
      await worker.coordinator.release(worker.id, ['p']);
      expect(await other.coordinator.claim(other.id, ['p'], 1)).toMatchObject([
        { project: 'p', nextTickAt: 4242, health: { lastPollAt: 5000 } },
      ]);
    });

    it('fail while the database is down and are stored when it is back', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      await worker.claim(['p']);
      await server.kill();
      await worker.store.commitPoll(unchanged(5000));
      await expect(worker.store.flush()).rejects.toMatchObject({ name: 'StoreError' });
      await expect(worker.store.commitPoll(unchanged(6000))).rejects.toMatchObject({
        reason: 'io',
      });
      expect(worker.log.of('store.commit_failed').length).toBeGreaterThanOrEqual(2);

      await server.start();
      await using other = await startWorker(url);
      const lastPollAt = async () => (await other.store.loadHealth('p')).lastPollAt;
      await vi.waitFor(async () => expect(await lastPollAt()).toBe(5000), PATIENCE);
      // The health of the rejected poll is not written later.
      await worker.store.flush();
      expect(await lastPollAt()).toBe(5000);
    });
  });
});

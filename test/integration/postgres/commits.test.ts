import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { type CuttingProxy, startCuttingProxy } from '../../support/cutting-proxy.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { healthAt, pollItems } from '../../support/experiments.ts';
import {
  describePostgres,
  type TestDatabase,
  WAITING,
  type Worker,
} from '../../support/postgres-store.ts';

/** What may happen to a connection, and what the test does then. */
const TROUBLES: readonly (readonly [
  name: string,
  begin: (proxy: CuttingProxy, after: number) => void,
  end: (proxy: CuttingProxy, log: Worker['log']) => Promise<void>,
])[] = [
  ['after they were made', (proxy, after) => proxy.loseAnswer(after), async () => {}],
  ['before they reach the server', (proxy, after) => proxy.loseRequest(after), async () => {}],
  [
    'and the database cannot be reached for a while',
    (proxy, after) => {
      proxy.loseAnswer(after);
      proxy.down();
    },
    async (proxy, log) => {
      await vi.waitFor(
        () => expect(log.of('store.commit_failed').length).toBeGreaterThan(1),
        PATIENCE,
      );
      proxy.up();
    },
  ],
];

const unchanged = (at: number) => ({
  project: 'p',
  at,
  health: healthAt(at),
  token: '',
  listings: new Map(),
});
const refusals = ({ log }: Worker) => log.of('store.commit_refused').map(({ project }) => project);

async function startBehindProxy(db: TestDatabase) {
  const proxy = await startCuttingProxy(db.server.port);
  const url = db.url.replace(`:${db.server.port}/`, `:${proxy.port}/`);
  return {
    proxy,
    worker: await db.owner(['p'], { url }),
    [Symbol.asyncDispose]: proxy[Symbol.asyncDispose],
  };
}

describePostgres('changes of a PostgreSQL store', (open) => {
  describe('by commits of an earlier ownership', () => {
    const block = (db: TestDatabase) =>
      db.begin('UPDATE evalwatch.project SET token = gen_random_uuid()');

    it.each([
      ['with changes', (worker: Worker) => worker.see('p', { x: 'FAILED' })],
      [
        'without changes',
        async ({ store }: Worker) => {
          await store.commitPoll(unchanged(2000));
          await store.ownership.flush();
        },
      ],
    ] as const)('do not end the current ownership (%s)', async (_name, commit) => {
      await using db = await open();
      const worker = await db.owner(['p']);
      const blocking = await block(db);
      const committing = commit(worker);
      await db.untilWaiting(1);
      const token = randomUUID();
      worker.store.ownership.disown('p');
      worker.store.ownership.own('p', token);
      await blocking.query('COMMIT');

      expect(await committing).toBeUndefined();
      expect(worker.store.ownership.tokens.get('p')).toBe(token);
    });

    it('are dropped when they cannot be written', async () => {
      await using db = await open();
      const worker = await db.owner(['p']);
      await worker.store.commitPoll(unchanged(2000));
      const blocking = await block(db);
      const flushing = worker.store.ownership.flush().catch((error: unknown) => error);
      await db.untilWaiting(1);
      worker.store.ownership.disown('p');
      await db.query(`SELECT pg_terminate_backend(pid) FROM (${WAITING}) w`);
      await blocking.query('ROLLBACK');
      expect(await flushing).toMatchObject({ name: 'StoreError' });

      await db.query('UPDATE evalwatch.project SET owner = NULL, token = gen_random_uuid()');
      await worker.claim(['p']);
      await worker.store.ownership.flush();
      expect(refusals(worker)).toEqual([]);
      expect((await worker.store.loadHealth('p')).lastPollAt).toBe(1000);
    });
  });

  describe('by commits whose connection breaks', () => {
    const fail = (worker: Worker) => worker.see('p', { x: 'FAILED' }, 2000);
    /** Lets the next statement after the read of what is known meet the trouble. */
    const COMMIT = 1;

    it.each(TROUBLES)('are made and returned once if it breaks %s', async (_name, begin, end) => {
      await using db = await open();
      await using given = await startBehindProxy(db);
      const { proxy, worker } = given;
      begin(proxy, COMMIT);
      const committing = fail(worker);
      await end(proxy, worker.log);

      expect(await committing).toMatchObject([{ id: 'x', to: 'FAILED', transitionId: 1 }]);
      expect(worker.log.of('store.commit_failed')).not.toEqual([]);
      expect(await worker.store.transitions({})).toHaveLength(1);
      expect(await worker.see('p', { x: 'COMPLETED' })).toMatchObject([{ id: 'x' }]);
    });

    it.each(TROUBLES)('finish experiments once if it breaks %s', async (_name, begin, end) => {
      await using db = await open();
      await using given = await startBehindProxy(db);
      const { proxy, worker } = given;
      const poll = async (status: string, at: number) =>
        await pollItems(worker.store, 'p', { x: [status, 'e'], y: [status, 'f'] }, at);
      await poll('RUNNING', 2000);
      await poll('COMPLETED', 3000);
      // What can finish is read as well.
      begin(proxy, COMMIT + 1);
      const committing = poll('COMPLETED', 4000);
      await end(proxy, worker.log);

      const committed = await committing;
      expect(committed).toMatchObject({
        transitions: [],
        finishes: [
          { finishId: 1, experiment: 'e' },
          { finishId: 2, experiment: 'f' },
        ],
      });
      expect(worker.log.of('store.commit_failed')).not.toEqual([]);
      const { finishes } = await worker.store.events(
        { transition: 0, settlement: 0, finish: 0 },
        9,
      );
      expect(finishes).toEqual(committed?.finishes);
      expect((await poll('COMPLETED', 5000))?.finishes).toEqual([]);
    });

    it('are made and returned once if it breaks while the server executes them', async () => {
      await using db = await open();
      await using given = await startBehindProxy(db);
      const blocking = await db.begin('SELECT FROM evalwatch.record FOR UPDATE');
      const committing = fail(given.worker);
      await db.untilWaiting(1);
      given.proxy.cut();
      // The repetition waits for it.
      await db.untilWaiting(2);
      await blocking.query('ROLLBACK');

      expect(await committing).toMatchObject([{ id: 'x', to: 'FAILED', transitionId: 1 }]);
      expect(await given.worker.store.transitions({})).toHaveLength(1);
      expect(refusals(given.worker)).toEqual([]);
    });

    it('are not made twice if the server receives the request late', async () => {
      await using db = await open();
      await using given = await startBehindProxy(db);
      const late = given.proxy.delayRequest(COMMIT);
      expect(await fail(given.worker)).toHaveLength(1);

      await late.deliver();

      expect(await given.worker.store.transitions({})).toHaveLength(1);
      expect((await given.worker.store.snapshot()).backlog.count).toBe(1);
    });
  });

  describe('of the configured projects whose connection breaks', () => {
    const CHANGE = 0;
    const configured = async (db: TestDatabase) => {
      const text = 'SELECT id FROM evalwatch.project WHERE removed_at IS NULL ORDER BY id';
      return (await db.query(text)).map(({ id }) => id);
    };

    it.each([
      ['after they were made', 'loseAnswer', ['q']],
      ['before they reach the server', 'loseRequest', ['p']],
    ] as const)('say that they may have been made if it breaks %s', async (_name, lose, after) => {
      await using db = await open();
      await using given = await startBehindProxy(db);
      const { proxy, worker } = given;
      proxy[lose](CHANGE);
      await expect(worker.store.configureProjects(['q'], 2)).rejects.toMatchObject({
        name: 'StoreError',
        message: expect.stringContaining('may have changed already') as unknown,
      });
      expect(worker.log.of('store.commit_failed')).toHaveLength(1);
      expect(await configured(db)).toEqual(after);
    });

    it('fail without effect if no connection can be opened', async () => {
      await using db = await open();
      await using given = await startBehindProxy(db);
      const { proxy, worker } = given;
      proxy.down();
      proxy.cut();
      // Afterwards no connection is left that looks alive.
      await expect(worker.store.projects()).rejects.toMatchObject({ reason: 'io' });
      await expect(worker.store.configureProjects(['q'], 2)).rejects.toMatchObject({
        name: 'StoreError',
        reason: 'io',
      });
      expect(await configured(db)).toEqual(['p']);
    });

    it('do not say that they may have been made if the database refuses them', async () => {
      await using db = await open();
      const worker = await db.owner(['p']);
      await db.query(
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
           AS 'BEGIN RAISE ''not allowed'' USING ERRCODE = ''42501''; END';
         CREATE TRIGGER refuse BEFORE UPDATE ON evalwatch.project EXECUTE FUNCTION refuse()`,
      );
      await expect(worker.store.configureProjects(['q'], 2)).rejects.toMatchObject({
        name: 'StoreError',
        reason: 'other',
        message: 'the database of store.postgres_url_file or _env refused (42501: not allowed)',
      });
      expect(await configured(db)).toEqual(['p']);
    });
  });

  it('by a poll without changes fail while the server is down, and are made when it is back', async () => {
    await using db = await open();
    const worker = await db.owner(['p']);
    await db.server.kill();
    await worker.store.commitPoll(unchanged(5000));
    await expect(worker.store.ownership.flush()).rejects.toMatchObject({ name: 'StoreError' });
    await expect(worker.store.commitPoll(unchanged(6000))).rejects.toMatchObject({ reason: 'io' });
    expect(worker.log.of('store.commit_failed').length).toBeGreaterThanOrEqual(2);

    await db.server.start();
    const other = await db.worker();
    // Not read through the worker itself: its reads store waiting health first.
    const lastPollAt = async () => (await other.store.loadHealth('p')).lastPollAt;
    await vi.waitFor(async () => expect(await lastPollAt()).toBe(5000), PATIENCE);
    // The health of the rejected poll is not written later.
    await worker.store.ownership.flush();
    expect(await lastPollAt()).toBe(5000);
  });

  it('by a poll without changes are refused, if a failover has lost the last commit of the project', async () => {
    await using db = await open();
    const worker = await db.owner(['p']);
    await worker.see('p', { x: 'FAILED' });
    // What a standby without the last commit has.
    await db.query('UPDATE evalwatch.project SET token = gen_random_uuid()');

    await worker.store.commitPoll(unchanged(5000));
    await worker.store.ownership.flush();

    expect(refusals(worker)).toEqual(['p']);
    expect(worker.store.ownership.tokens.size).toBe(0);
    expect((await worker.store.loadHealth('p')).lastPollAt).toBe(1000);
  });
});

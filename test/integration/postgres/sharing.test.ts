import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { projectsDigestOf } from '../../../src/coordination/projects-digest.ts';
import { openPostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { healthAt, startWorker } from '../../support/postgres-store.ts';
import { startPostgres } from '../../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts';

describe.skipIf(postgresPrograms() === undefined)('workers on one PostgreSQL database', () => {
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

  async function ownedBy({ coordinator, id }: Awaited<ReturnType<typeof startWorker>>) {
    return [...(await coordinator.ownedBy(id)).keys()].toSorted();
  }

  const many = Array.from({ length: 50 }, (_, index) => `p${index}`);

  describe('claiming projects', () => {
    it('gives each project to one worker and none that has an owner', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(many, 1);

      const claimed = await Promise.all([first.claim(many, 30), second.claim(many, 30)]);

      expect(claimed.flat().toSorted()).toEqual(many.toSorted());
      expect(await first.claim(many)).toEqual([]);
    });

    it('gives a project with the whole health that its last owner stored', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' }, 1000);
      await expire(first.id);

      const claimed = await second.coordinator.claim(second.id, ['p'], 1);

      expect(claimed).toMatchObject([{ project: 'p', health: healthAt(1000) }]);
    });

    it('gives only configured and requested projects, the earliest due first', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['a', 'b', 'c', 'd'], 1);
      await server.query(
        database,
        `UPDATE evalwatch.project
         SET next_tick_at = CASE id WHEN 'a' THEN 30 WHEN 'b' THEN 20 WHEN 'c' THEN 10 END`,
      );
      await worker.store.configureProjects(['a', 'b', 'c'], 2);

      expect(await worker.claim(['a', 'b', 'd'], 1)).toEqual(['b']);
      expect(await worker.claim(['a', 'b', 'd'])).toEqual(['a']);
    });

    it('assigns a new epoch even after a failover that lost the last claim', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      const [lost] = await worker.coordinator.claim(worker.id, ['p'], 1);
      await server.query(database, 'UPDATE evalwatch.project SET owner = NULL');
      await server.query(database, "SELECT setval('evalwatch.epoch', 1, false)");

      const [claimed] = await worker.coordinator.claim(worker.id, ['p'], 1);

      expect(claimed?.epoch).toBeGreaterThan(lost?.epoch ?? Infinity);
      expect(
        await server.query(database, 'SELECT owner, epoch::integer FROM evalwatch.project'),
      ).toEqual([{ owner: worker.id, epoch: claimed?.epoch }]);
    });

    it('takes over from a worker whose lease has expired, which can join again', async () => {
      await using paused = await startWorker(url);
      await using other = await startWorker(url);
      await other.store.configureProjects(['p', 'q'], 1);
      await paused.claim(['p', 'q']);
      expect(await other.coordinator.owner('p')).toMatchObject({ worker: paused.id });
      await expire(paused.id);

      expect(await other.coordinator.owner('p')).toBeUndefined();
      expect(await paused.coordinator.beat(paused.identity)).toBeUndefined();
      expect(await paused.claim(['p'])).toEqual([]);
      expect(await other.claim(['p'])).toEqual(['p']);
      await paused.coordinator.join({ id: paused.id, version: '1', configDigest: '' });
      expect(await paused.claim(['p', 'q'])).toEqual(['q']);
    });

    it('excludes a project removed from the configuration, whose owner loses it', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p', 'q'], 1);
      await first.claim(['p', 'q']);
      await first.see('p', { x: 'RUNNING' });
      await first.see('q', { x: 'RUNNING' });
      await second.store.configureProjects(['q'], 2);

      expect(await first.see('p', { x: 'FAILED' })).toBeUndefined();
      expect(first.log.of('store.commit_refused')).toMatchObject([
        { project: 'p', reason: 'epoch', isFromEarlierOwnership: false },
      ]);
      expect(await first.claim(['p'])).toEqual([]);
      expect(await first.see('q', { x: 'FAILED' })).toHaveLength(1);
      await second.store.configureProjects(['p', 'q'], 3);
      expect(await second.claim(['p', 'q'])).toEqual(['p']);
    });

    it('takes over projects of a worker that joined again, whose lease renewal then counts 0 owned', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p', 'q', 'ü'], 1);
      await first.claim(['p', 'ü']);
      await second.claim(['q']);
      expect(await ownedBy(first)).toEqual(['p', 'ü']);

      await first.coordinator.join(first.identity);
      await second.claim(['p']);

      const beat = await first.coordinator.beat(first.identity);
      expect(beat?.owned).toEqual({ projects: 0, epochs: 0 });
      expect(await ownedBy(first)).toEqual([]);
      expect(await ownedBy(second)).toEqual(['p', 'q']);
    });

    it('finds free projects by hasFree of the lease renewal, true while one has no live owner', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      const hasFree = async () => (await first.coordinator.beat(first.identity))?.hasFree;
      await first.store.configureProjects(['p', 'q', 'removed'], 1);
      await first.store.configureProjects(['p', 'q'], 2);
      await first.claim(['p']);

      expect(await hasFree()).toBe(true);
      await second.claim(['q']);
      expect(await hasFree()).toBe(false);
      await second.coordinator.release(second.id, ['q']);
      expect(await hasFree()).toBe(true);
      await second.claim(['q']);
      await expire(second.id);
      expect(await hasFree()).toBe(true);
      await first.claim(['q']);
      expect(await hasFree()).toBe(false);
    });

    it('gives a released project again under a higher epoch', async () => {
      await using first = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      const before = await first.coordinator.claim(first.id, ['p'], 1);
      await first.coordinator.release('somebody else', ['p']);
      expect(await first.coordinator.claim(first.id, ['p'], 1)).toEqual([]);
      await first.coordinator.release(first.id, ['p']);
      const after = await first.coordinator.claim(first.id, ['p'], 1);
      expect(after[0]?.epoch).toBeGreaterThan(before[0]?.epoch ?? 0);
    });
  });

  describe('after the clock of the database is set back', () => {
    const setBack = () =>
      server.query(
        database,
        "UPDATE evalwatch.worker SET expires_at = expires_at + interval '1 hour'",
      );

    it('do not wait for the lease of a dead worker', async () => {
      await using dead = await startWorker(url);
      await using living = await startWorker(url);
      await living.store.configureProjects(['p'], 1);
      await dead.claim(['p']);
      await dead.see('p', { x: 'RUNNING' });
      await dead.see('p', { x: 'FAILED' });
      expect(await dead.store.pendingFailures({ limitPerProject: 1 })).toHaveLength(1);
      await setBack();

      const beat = await living.coordinator.beat(living.identity);

      expect(beat?.workers).toMatchObject([{ id: living.id }]);
      expect(await living.coordinator.owner('p')).toBeUndefined();
      expect(await living.store.pendingFailures({ limitPerProject: 1 })).toHaveLength(1);
      expect(await living.claim(['p'])).toEqual(['p']);
      expect(await living.coordinator.owner('p')).toMatchObject({ worker: living.id });
    });

    /** Gives the database a clock that can be set: its search path finds these functions first. */
    const makeClock = async () => {
      await server.query(
        database,
        `CREATE SCHEMA clock;
         CREATE TABLE clock.shift AS SELECT interval '0' AS shift;
         CREATE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE sql
           AS 'SELECT pg_catalog.now() + shift FROM clock.shift';
         CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
           AS 'SELECT pg_catalog.clock_timestamp() + shift FROM clock.shift';
         ALTER DATABASE ${database} SET search_path = clock, pg_catalog`,
      );
      return async (by: string) => {
        await server.query(database, 'UPDATE clock.shift SET shift = shift + $1::interval', [by]);
      };
    };

    it('do not wait for the lease of a worker that died just before', async () => {
      const shift = await makeClock();
      let aheadMs = 0;
      const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
      await using dead = await startWorker(url, { leaseMs: 60_000 });
      await using living = await startWorker(url, { clock });
      await living.store.configureProjects(['p'], 1);
      await dead.claim(['p']);
      await living.coordinator.beat(living.identity);
      await shift('-2 minutes');
      expect((await living.coordinator.beat(living.identity))?.workers).toHaveLength(2);

      aheadMs = 60_000;
      const beat = await living.coordinator.beat(living.identity);

      expect(beat?.workers).toMatchObject([{ id: living.id }]);
      expect(await living.claim(['p'])).toEqual(['p']);
    });

    it('ignore a worker whose lease had already expired', async () => {
      const shift = await makeClock();
      await using dead = await startWorker(url, { leaseMs: 60_000 });
      await using living = await startWorker(url);
      await shift('90 seconds');
      await living.coordinator.beat(living.identity);
      await shift('-90 seconds');

      const beat = await living.coordinator.beat(living.identity);

      expect(beat?.workers).toMatchObject([{ id: living.id }]);
      expect(await dead.coordinator.beat(dead.identity)).toBeUndefined();
    });

    it.each([
      [0.1, '45 seconds'],
      [0.1, '1 hour'],
      [0.01, '1 hour'],
    ])(
      'are granted one request at once and the next within its interval (%d/s, set back by %s)',
      async (perSecond, back) => {
        const shift = await makeClock();
        await using worker = await startWorker(url);
        await worker.coordinator.grant(1, perSecond, 500);
        await shift(`-${back}`);

        expect(await worker.coordinator.grant(1, perSecond, 500)).toMatchObject({
          count: 1,
          startsInMs: 0,
        });
        const next = await worker.coordinator.grant(1, perSecond, 1_000_000);
        expect(next.startsInMs).toBeGreaterThan(0);
        expect(next.startsInMs).toBeLessThanOrEqual(1000 / perSecond);
      },
    );
  });

  it('see all workers and the totals of their own projects at each lease renewal until one leaves', async () => {
    await using first = await startWorker(url, { id: 'a' });
    await using second = await startWorker(url, { id: 'b' });
    await first.store.configureProjects(many, 1);
    await first.claim(many, 20);
    await second.claim(many, 20);

    const beat = await first.coordinator.beat(first.identity);

    const same = { version: '1.0.0', configDigest: 'same' };
    expect(beat?.workers).toEqual([
      { id: 'a', ...same },
      { id: 'b', ...same },
    ]);
    const epochs = await first.coordinator.ownedBy('a');
    expect(epochs.get('p0')).toBe(first.store.epoch('p0'));
    const sum = epochs.values().reduce((total, epoch) => total + epoch, 0);
    expect(beat?.owned).toEqual({ projects: 20, epochs: sum });
    expect(beat?.lease.until).toBeLessThanOrEqual(performance.now() + 600_000);
    await first.coordinator.leave('a');
    expect((await second.coordinator.beat(second.identity))?.workers).toMatchObject([{ id: 'b' }]);
    expect(await second.claim(many)).toHaveLength(30);
  });

  it('share one limit of requests per second', async () => {
    await using first = await startWorker(url);
    await using second = await startWorker(url);
    const started = performance.now();
    const slices = [];
    for (let turn = 0; turn < 10; turn += 1) {
      for (const { coordinator } of [first, second]) {
        const at = performance.now() - started;
        const { count, startsInMs, spacingMs } = await coordinator.grant(15, 50, 500);
        expect(count === 0 || startsInMs + (count - 1) * spacingMs <= 500.001).toBe(true);
        slices.push({ from: at + startsInMs, count });
      }
      await setTimeout(50);
    }
    const elapsed = performance.now() - started;

    const granted = slices.reduce((sum, { count }) => sum + count, 0);
    expect(granted).toBeGreaterThan(25);
    expect(granted).toBeLessThanOrEqual(1 + Math.ceil(((elapsed + 500) / 1000) * 50));
  });

  describe('pending failures', () => {
    it('are divided among workers and taken over from one whose lease has expired', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      const ids = Array.from({ length: 20 }, (_, index) => `x${index}`);
      const all = (status: string) => Object.fromEntries(ids.map((id) => [id, status]));
      await first.see('p', all('RUNNING'));
      await first.see('p', all('FAILED'));
      const due = { dueAt: 5000, limitPerProject: 12 };

      const [one, other] = await Promise.all([
        first.store.pendingFailures(due),
        second.store.pendingFailures(due),
      ]);

      const taken = [...one, ...other].map(({ promptId }) => promptId);
      expect(new Set(taken).size).toBe(taken.length);
      expect(one).not.toEqual([]);
      expect(other.length === 0 || one.length + other.length === 20).toBe(true);
      // Asking again returns the same failures.
      expect(await first.store.pendingFailures({ ...due, limitPerProject: one.length })).toEqual(
        one,
      );
      await expire(first.id);
      expect(await first.store.pendingFailures(due)).toEqual([]);
      expect(await second.store.pendingFailures({ ...due, limitPerProject: 100 })).toHaveLength(20);
    });

    it('are listed by project, including removed projects', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p', 'q', 'r'], 1);
      await first.claim(['p', 'q', 'r']);
      for (const project of ['p', 'q', 'r']) await first.see(project, { x: 'RUNNING' });
      for (const project of ['p', 'r']) await first.see(project, { x: 'FAILED' });
      await first.store.configureProjects(['p', 'q'], 2);

      const failing = await second.store.failingProjects();

      expect(failing.toSorted((one, other) => one.project.localeCompare(other.project))).toEqual([
        { project: 'p', removed: false },
        { project: 'r', removed: true },
      ]);
    });

    it('keep the first settlement even if another worker has claimed the failure by then', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' });
      await first.see('p', { x: 'FAILED' });
      const [late] = await first.store.pendingFailures({ limitPerProject: 1 });
      if (late === undefined) throw new Error('nothing is pending');
      await expire(first.id);
      expect(await second.store.pendingFailures({ limitPerProject: 1 })).toHaveLength(1);

      const of = (error_id: string) => {
        return { errorInfo: { error_id, error_msg: '' }, errorMsgTruncated: false };
      };
      await first.store.settleFailure(late, of('LATE'), 1);
      await second.store.settleFailure(late, of('OWN'), 2);

      const [failure] = await second.store.failures({});
      expect(failure?.settlement?.errorInfo?.error_id).toBe('LATE');
    });

    it('ignore a late postponement by a worker that has lost its claim', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' });
      await first.see('p', { x: 'FAILED' });
      const [late] = await first.store.pendingFailures({ limitPerProject: 1 });
      if (late === undefined) throw new Error('nothing is pending');
      await expire(first.id);
      expect(await second.store.pendingFailures({ limitPerProject: 1 })).toHaveLength(1);
      await first.coordinator.join(first.identity);

      const tries = { count: 1, useless: 0, firstAt: 1, lastAt: 1, nextAt: 2 };
      await first.store.postponeFailure(late, tries);

      expect(await first.store.pendingFailures({ limitPerProject: 1 })).toEqual([]);
      const [pending] = await second.store.pendingFailures({ limitPerProject: 1 });
      expect(pending?.tries).toMatchObject({ count: 0 });
    });

    it('can be claimed by any worker once they are postponed', async () => {
      await using first = await startWorker(url);
      await using second = await startWorker(url);
      await first.store.configureProjects(['p'], 1);
      await first.claim(['p']);
      await first.see('p', { x: 'RUNNING' });
      await first.see('p', { x: 'FAILED' });
      const [mine] = await first.store.pendingFailures({ limitPerProject: 1 });
      if (mine === undefined) throw new Error('nothing is pending');
      expect(await second.store.pendingFailures({ limitPerProject: 1 })).toEqual([]);

      const tries = { count: 1, useless: 0, firstAt: 1, lastAt: 1, nextAt: 2 };
      await first.store.postponeFailure(mine, tries);

      expect(await second.store.pendingFailures({ limitPerProject: 1 })).toMatchObject([{ tries }]);
    });
  });

  describe('events', () => {
    const START = { transition: 0, settlement: 0 };
    const insert = `INSERT INTO evalwatch.transition
      (project_key, at, epoch, version, kind, from_status, to_status, record_id)
      SELECT project_key, 1, 1, 1, 'prompt', 'RUNNING', 'FAILED', $1 FROM evalwatch.project`;
    const idsOf = ({ transitions }: { transitions: readonly { id: string }[] }) =>
      transitions.map(({ id }) => id);

    it('stop at an uncommitted transition, and continue in order after its commit', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      await server.query(database, insert, ['first']);
      expect(idsOf(await worker.store.events(START, 10))).toEqual(['first']);
      const slow = await server.connect(database);
      await slow.query('BEGIN');
      await slow.query(insert, ['slow']);
      await server.query(database, insert, ['quick']);

      const meanwhile = await worker.store.events(START, 10);
      expect(idsOf(meanwhile)).toEqual(['first']);
      expect(meanwhile.end.transition).toBe(1);
      await slow.query('COMMIT');
      await slow.end();

      const after = await worker.store.events(meanwhile.end, 10);
      expect(idsOf(after)).toEqual(['slow', 'quick']);
      expect(after.end.transition).toBe(3);
    });

    it('wait for a transition that is committed 200 ms later', async () => {
      await using reader = await startWorker(url);
      await reader.store.configureProjects(['p'], 1);
      const slow = await server.connect(database);
      await slow.query('BEGIN');
      await slow.query(insert, ['slow']);
      const reading = reader.store.events(START, 10);
      await setTimeout(200);
      await slow.query('COMMIT');
      await slow.end();

      expect(idsOf(await reading)).toEqual(['slow']);
    });

    it('are not held back by an unrelated open transaction', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      const foreign = await server.connect(database);
      await foreign.query('BEGIN');
      await foreign.query('CREATE TABLE theirs (a integer)');
      await foreign.query('SELECT count(*) FROM evalwatch.transition');
      await server.query(database, insert, ['x']);

      expect(idsOf(await worker.store.events(START, 10))).toEqual(['x']);
      await foreign.query('ROLLBACK');
      await foreign.end();
    });

    it('fail as busy in a new reader while a transition is uncommitted', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      await server.query(database, insert, ['first']);
      const slow = await server.connect(database);
      await slow.query('BEGIN');
      await slow.query(insert, ['slow']);
      const reader = await openPostgresReader({ clock: systemClock, url });

      await expect(reader.events(START, 10)).rejects.toMatchObject({ reason: 'busy' });
      await reader.close();
      await slow.end();
    });

    it('accept a position from another worker that is ahead of the visible transitions', async () => {
      await using worker = await startWorker(url);
      await worker.store.configureProjects(['p'], 1);
      await server.query(database, insert, ['first']);
      await worker.store.events(START, 10);
      const slow = await server.connect(database);
      await slow.query('BEGIN');
      await slow.query(insert, ['slow']);

      const seen = await worker.store.events({ transition: 2, settlement: 0 }, 10);
      expect(seen).toEqual({ transitions: [], settled: [], end: { transition: 2, settlement: 0 } });
      await slow.end();
    });
  });

  it('configure projects at the same time without conflicts', async () => {
    await using first = await startWorker(url);
    await using second = await startWorker(url);
    const half = many.slice(25);
    await Promise.all(
      Array.from({ length: 20 }, (_, turn) =>
        (turn % 2 === 0 ? first : second).store.configureProjects(turn % 4 < 2 ? many : half, turn),
      ),
    );
    // The newest change wins, and the digest is its own.
    const configured = async () =>
      (await second.store.snapshot()).projects.map(({ project }) => project);
    const digest = (await second.coordinator.beat(second.identity))?.configured.digest;
    expect(digest).toBe(projectsDigestOf(await configured()));
    await first.store.configureProjects(many, 99);
    expect(await configured()).toHaveLength(50);
  });

  it('configure a project as new while another worker deletes it', async () => {
    await using worker = await startWorker(url);
    await worker.store.configureProjects(['p', 'q'], 1);
    await worker.store.configureProjects(['q'], 2);
    const pruning = await server.connect(database);
    await pruning.query('BEGIN');
    await pruning.query('DELETE FROM evalwatch.project WHERE removed_at IS NOT NULL');
    const configuring = worker.store.configureProjects(['p', 'q'], 3);
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await server.untilRows(database, waiting, (rows) => rows > 0);
    await pruning.query('COMMIT');
    await pruning.end();
    await configuring;

    expect(await worker.claim(['p', 'q'])).toEqual(['p', 'q']);
  });

  it('read byte-identical snapshots', async () => {
    await using first = await startWorker(url);
    await using second = await startWorker(url);
    await first.store.configureProjects(['p', 'q'], 1);
    await first.claim(['p']);
    await second.claim(['q']);
    await first.see('p', { x: 'PENDING', y: 'RUNNING' });
    await second.see('q', { x: 'RUNNING' });
    await first.see('p', { x: 'FAILED', y: 'COMPLETED' });

    const texts = await Promise.all(
      [first, second].map(async ({ store }) => {
        const { projects, backlog } = await store.snapshot();
        return JSON.stringify([projects, backlog], (_key, value: unknown) =>
          value instanceof Map ? [...value] : value,
        );
      }),
    );
    expect(texts[0]).toBe(texts[1]);
    expect(texts[0]).toContain('COMPLETED');
  });
});

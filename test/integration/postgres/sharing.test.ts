import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { projectsDigestOf } from '../../../src/coordination/projects-digest.ts';
import type { FailureKey } from '../../../src/monitor/ports/store.ts';
import { openPostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { describePostgres, healthAt, type Worker } from '../../support/postgres-store.ts';
import { withCause } from '../../support/failures.ts';

const MANY = Array.from({ length: 50 }, (_, index) => `p${index}`);

/** Lets `count` prompts of project p fail. */
async function fail(owner: Worker, count: number): Promise<readonly FailureKey[]> {
  const all = (status: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, status]));
  await owner.see('p', all('RUNNING'));
  await owner.see('p', all('FAILED'));
  return await owner.store.pendingFailures({ limitPerProject: count });
}

describePostgres('workers on one PostgreSQL database', (open) => {
  describe('that claim projects', () => {
    it('get different ones at the same time', async () => {
      await using db = await open();
      const first = await db.worker();
      const second = await db.worker();
      await first.store.configureProjects(MANY, 1);

      const claimed = await Promise.all([first.claim(MANY, 30), second.claim(MANY, 30)]);

      expect(claimed.flat().toSorted()).toEqual(MANY.toSorted());
      expect(await first.claim(MANY)).toEqual([]);
    });

    it('get only configured and requested ones, the earliest due first, with their health', async () => {
      await using db = await open();
      const worker = await db.owner(['a', 'b', 'c', 'd']);
      await worker.coordinator.release(worker.id, ['a', 'b', 'c', 'd']);
      await db.query(
        `UPDATE evalwatch.project
         SET next_tick_at = CASE id WHEN 'a' THEN 30 WHEN 'b' THEN 20 WHEN 'c' THEN 10 END`,
      );
      await worker.store.configureProjects(['a', 'b', 'c'], 2);

      const { coordinator, id } = worker;
      expect(await coordinator.claim(id, ['a', 'b', 'd'], 1)).toMatchObject([
        { project: 'b', nextTickAt: 20, health: healthAt(1000) },
      ]);
      expect(await worker.claim(['a', 'b', 'd'])).toEqual(['a']);
    });

    it('get a new epoch even after a failover that lost the last claim', async () => {
      await using db = await open();
      const worker = await db.owner(['p']);
      const lost = worker.store.epoch('p');
      await db.query('UPDATE evalwatch.project SET owner = NULL');
      await db.query("SELECT setval('evalwatch.epoch', 1, false)");
      await worker.claim(['p']);
      expect(worker.store.epoch('p')).toBeGreaterThan(lost ?? Infinity);
    });

    it('do not wait for a lease from before the clock of the database was set back', async () => {
      await using db = await open();
      const dead = await db.owner(['p']);
      const living = await db.worker();
      await db.query("UPDATE evalwatch.worker SET expires_at = expires_at + interval '1 hour'");
      const beat = await living.coordinator.beat(living.identity);
      expect(beat?.workers.map(({ id }) => id)).toEqual([living.id]);
      expect(await living.claim(['p'])).toEqual(['p']);
      expect(await living.coordinator.owner('p')).toMatchObject({ worker: living.id });
      expect(await dead.see('p', { x: 'FAILED' })).toBeUndefined();
    });

    it('take over from a worker whose lease has expired, which can join again', async () => {
      await using db = await open();
      const paused = await db.owner(['p', 'q']);
      const other = await db.worker();
      const hasFree = async () => (await other.coordinator.beat(other.identity))?.hasFree;
      expect(await other.coordinator.owner('p')).toMatchObject({ worker: paused.id });
      expect(await hasFree()).toBe(false);
      await db.expire(paused);

      expect(await hasFree()).toBe(true);
      expect(await other.coordinator.owner('p')).toBeUndefined();
      expect(await paused.coordinator.beat(paused.identity)).toBeUndefined();
      expect(await paused.claim(['p'])).toEqual([]);
      expect(await other.claim(['p'])).toEqual(['p']);
      expect(await paused.see('p', { x: 'FAILED' })).toBeUndefined();
      const { token } = await paused.store.loadKnown('p', []);
      const unchanged = { project: 'p', at: 7777, health: healthAt(7777), token };
      await paused.store.commitPoll({ ...unchanged, listings: new Map() });
      await paused.store.flush();
      const refused = { project: 'p', reason: 'epoch', isFromEarlierOwnership: false };
      expect(paused.log.of('store.commit_refused')).toMatchObject([refused, refused]);
      expect((await other.store.loadHealth('p')).lastPollAt).toBe(1000);
      expect(await other.see('p', { x: 'FAILED' })).toHaveLength(1);

      await paused.coordinator.join(paused.identity);
      const beat = await paused.coordinator.beat(paused.identity);
      expect(beat?.owned).toEqual({ projects: 0, epochs: 0 });
      expect(beat?.workers.map(({ id }) => id)).toEqual([paused.id, other.id].toSorted());
      expect(await paused.claim(['p', 'q'])).toEqual(['q']);
      const owned = await paused.coordinator.ownedBy(paused.id);
      expect(owned).toEqual(new Map([['q', paused.store.epoch('q')]]));
    });
  });

  it('get no place for a request twice if they wait for each other', async () => {
    await using db = await open();
    const first = await db.worker();
    const second = await db.worker();
    const blocking = await db.begin('SELECT FROM evalwatch.rate FOR UPDATE');
    const waiting = first.coordinator.grant(15, 50, 1000);
    await db.untilWaiting(1);
    // Places that were counted from before the wait would be over by now.
    await setTimeout(400);
    const unblockedAt = performance.now();
    await blocking.query('COMMIT');

    expect(await waiting).toMatchObject({ count: 15, startsInMs: 0 });
    const next = await second.coordinator.grant(15, 50, 1000);
    // 15 places at 50 a second.
    expect(performance.now() + next.startsInMs).toBeGreaterThan(unblockedAt + 299);
  });

  describe('that report failures', () => {
    it('divide them, and take over those of a worker whose lease has expired', async () => {
      await using db = await open();
      const first = await db.owner(['p']);
      const second = await db.worker();
      await fail(first, 20);
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
      await db.expire(first);
      expect(await first.store.pendingFailures(due)).toEqual([]);
      expect(await second.store.pendingFailures({ ...due, limitPerProject: 100 })).toHaveLength(20);
    });

    it('find them by project, also those of a removed project', async () => {
      await using db = await open();
      const owner = await db.owner(['p', 'q', 'r']);
      for (const project of ['p', 'r']) await owner.see(project, { x: 'FAILED' });
      await owner.store.configureProjects(['p', 'q'], 2);
      const failing = await (await db.worker()).store.failingProjects();
      expect(failing.toSorted((one, other) => one.project.localeCompare(other.project))).toEqual([
        { project: 'p', removed: false },
        { project: 'r', removed: true },
      ]);
    });

    const settle = ({ store }: Worker, failure: FailureKey | undefined, error_id: string) =>
      store.settleFailure(
        failure ?? { transitionId: 0, token: undefined },
        withCause({ errorInfo: { error_id, error_msg: 'x' }, errorMsgTruncated: false }),
        5000 + (failure?.transitionId ?? 0),
      );
    async function totals({ store }: Worker): Promise<ReadonlyMap<string, number>> {
      const { projects } = await store.snapshot();
      const errors = projects[0]?.listings.get('prompt')?.errors ?? [];
      return new Map(errors.map(({ label, count }) => [label, count]));
    }

    it('count each once, with at most 20 error_ids, even if all settle all of them', async () => {
      await using db = await open();
      const first = await db.owner(['p']);
      const workers = [first, await db.worker(), await db.worker()];
      const failures = await fail(first, 90);
      await Promise.all(
        workers.flatMap((worker) =>
          failures.map((failure, index) => settle(worker, failure, `E${index % 45}`)),
        ),
      );
      const { other, ...own } = Object.fromEntries(await totals(first));
      expect(Object.values(own)).toEqual(Array(20).fill(2));
      expect(other).toBe(50);
      for (const { log } of workers) expect(log.of('store.commit_failed')).toEqual([]);
    });

    it('count one as other if another worker takes the last label at the same time', async () => {
      await using db = await open();
      const worker = await db.owner(['p']);
      const [first, second] = await fail(worker, 2);
      await settle(worker, first, 'known');
      const blocking = await db.begin(
        `INSERT INTO evalwatch.error_total
         SELECT project_key, 'of another worker ' || n, n, 1, 1, 1
         FROM evalwatch.error_total, generate_series(1, 20) n WHERE n <> place`,
      );
      const settling = settle(worker, second, 'late');
      await db.untilWaiting(1);
      await blocking.query('COMMIT');
      await settling;
      const found = await totals(worker);
      expect(found.size).toBe(21);
      expect([found.get('known'), found.get('late'), found.get('other')]).toEqual([
        1,
        undefined,
        1,
      ]);
      expect(worker.log.of('store.commit_failed')).toEqual([]);
    });
  });

  describe('that read events', () => {
    const START = { transition: 0, settlement: 0 };
    const insert = (id: string) => `INSERT INTO evalwatch.transition
      (project_key, at, epoch, version, kind, from_status, to_status, record_id)
      SELECT project_key, 1, 1, 1, 'prompt', 'RUNNING', 'FAILED', '${id}' FROM evalwatch.project`;
    const idsOf = ({ transitions }: { transitions: readonly { id: string }[] }) =>
      transitions.map(({ id }) => id);
    /** Waits for a writer without spending time. */
    const hurried = { ...systemClock, sleep: async () => {} };

    it('stop at an uncommitted transition, and continue in order after its commit', async () => {
      await using db = await open();
      const { store } = await db.owner(['p'], { clock: hurried });
      await db.query(insert('first'));
      expect(idsOf(await store.events(START, 10))).toEqual(['first']);
      const slow = await db.begin(insert('slow'));
      await db.query(insert('quick'));

      const meanwhile = await store.events(START, 10);
      expect(idsOf(meanwhile)).toEqual(['first']);
      expect(meanwhile.end.transition).toBe(1);
      // Another worker, which has seen the commit, can give a position ahead of what this one knows.
      const ahead = { transition: 3, settlement: 0 };
      expect(await store.events(ahead, 10)).toEqual({ transitions: [], settled: [], end: ahead });
      const reader = await openPostgresReader({ clock: hurried, url: db.url });
      await expect(reader.events(START, 10)).rejects.toMatchObject({ reason: 'busy' });
      await reader.close();
      await slow.query('COMMIT');

      const after = await store.events(meanwhile.end, 10);
      expect(idsOf(after)).toEqual(['slow', 'quick']);
      expect(after.end.transition).toBe(3);
    });

    it('wait for a transition that is about to be committed', async () => {
      await using db = await open();
      let sleeps = 0;
      const sleep = async () => {
        sleeps += 1;
        if (sleeps === 3) await slow.query('COMMIT');
      };
      const { store } = await db.owner(['p'], { clock: { ...systemClock, sleep } });
      const slow = await db.begin(insert('slow'));
      expect(idsOf(await store.events(START, 10))).toEqual(['slow']);
    });

    it('are not held back by an unrelated open transaction', async () => {
      await using db = await open();
      const { store } = await db.owner(['p'], { clock: hurried });
      await db.begin('CREATE TABLE theirs (); SELECT count(*) FROM evalwatch.transition');
      await db.query(insert('x'));
      expect(idsOf(await store.events(START, 10))).toEqual(['x']);
    });
  });

  describe('that configure projects', () => {
    it('do so at the same time without conflicts', async () => {
      await using db = await open();
      const first = await db.worker();
      const second = await db.worker();
      const half = MANY.slice(25);
      await Promise.all(
        Array.from({ length: 20 }, (_, turn) =>
          (turn % 2 === 0 ? first : second).store.configureProjects(
            turn % 4 < 2 ? MANY : half,
            turn,
          ),
        ),
      );
      // The newest change wins, and the digest is its own.
      const configured = async () =>
        (await second.store.snapshot()).projects.map(({ project }) => project);
      const digest = (await second.coordinator.beat(second.identity))?.configured.digest;
      expect(digest).toBe(projectsDigestOf(await configured()));
      await first.store.configureProjects(MANY, 99);
      expect(await configured()).toHaveLength(50);
    });

    it('configure one as new while another worker deletes it', async () => {
      await using db = await open();
      const worker = await db.worker();
      await worker.store.configureProjects(['p', 'q'], 1);
      await worker.store.configureProjects(['q'], 2);
      const pruning = await db.begin('DELETE FROM evalwatch.project WHERE removed_at IS NOT NULL');
      const configuring = worker.store.configureProjects(['p', 'q'], 3);
      await db.untilWaiting(1);
      await pruning.query('COMMIT');
      await configuring;
      expect(await worker.claim(['p', 'q'])).toEqual(['p', 'q']);
    });

    it('restore lost ones only if the configuration has not changed since', async () => {
      await using db = await open();
      const { store, coordinator, identity } = await db.owner(['p']);
      const newest = async () => (await coordinator.beat(identity))?.configured.epoch ?? NaN;
      const configured = async () =>
        (await store.snapshot()).projects.map(({ project }) => project);
      const before = await newest();
      await store.configureProjects(['q'], 2);

      expect(await store.restoreProjects(['p'], 3, before)).toBe(false);
      expect(await configured()).toEqual(['q']);
      expect(await store.restoreProjects(['p'], 3, await newest())).toBe(true);
      expect(await configured()).toEqual(['p']);
    });

    it('restore none while a reload is under way', async () => {
      await using db = await open();
      const { store } = await db.worker();
      const blocking = await db.begin('LOCK evalwatch.configuration');
      const reloading = store.configureProjects(['beta'], 1);

      expect(await store.restoreProjects(['alpha'], 2, 0)).toBe(false);

      await blocking.query('COMMIT');
      await reloading;
      expect(await store.projects()).toEqual(['beta']);
    });
  });
});

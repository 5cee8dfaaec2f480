import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { digestOf } from '../../../src/coordination/worker.ts';
import type { FailureKey } from '../../../src/monitor/ports/store.ts';
import { openPostgresReader } from '../../../src/store/postgres/postgres-reader.ts';
import { healthAt } from '../../support/experiments.ts';
import { describePostgres, type Worker } from '../../support/postgres-store.ts';
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
    const SHARED = 'the same configuration';

    it('get different ones at the same time, and no more than their share', async () => {
      await using db = await open();
      const first = await db.worker();
      const second = await db.worker();
      const together = [first, second].map((worker) => {
        return { worker, identity: { ...worker.identity, configDigest: SHARED } };
      });
      await first.store.configureProjects(MANY, 1);
      for (const { worker, identity } of together) await worker.coordinator.renew(identity);

      const claimed = await Promise.all(
        together.map(({ worker, identity }) => worker.claim(MANY, identity)),
      );
      for (const { worker, identity } of together) {
        claimed.push(await worker.claim(MANY, identity));
      }

      expect(claimed.flat().toSorted()).toEqual(MANY.toSorted());
      for (const { worker } of together) expect(worker.store.ownership.tokens.size).toBe(25);
    });

    it('get only configured and requested ones, with their health', async () => {
      await using db = await open();
      const worker = await db.owner(['a', 'b', 'c']);
      await worker.release(['a', 'b', 'c']);
      await worker.store.configureProjects(['a', 'b'], 2);
      expect(await worker.claim(['b', 'c'])).toEqual(['b']);
      expect(await worker.coordinator.load(worker.id, ['a', 'b', 'c'])).toMatchObject([
        { project: 'b', figures: { snapshot: { health: healthAt(1000) } } },
      ]);
    });

    it('give them another token with each claim, commit and release', async () => {
      await using db = await open();
      const worker = await db.owner(['p']);
      const tokens = new Set<unknown>();
      const note = async () =>
        tokens.add((await db.query('SELECT token FROM evalwatch.project'))[0]?.['token']);
      await note();
      await worker.see('p', { x: 'FAILED' });
      await note();
      await worker.release(['p']);
      await note();
      await worker.claim(['p']);
      await note();
      await worker.coordinator.leave(worker.id);
      await note();
      expect(tokens.size).toBe(5);
    });

    it('take over from a worker whose lease has expired', async () => {
      await using db = await open();
      const paused = await db.owner(['p', 'q']);
      const other = await db.worker();
      const hasFree = async () => (await other.coordinator.renew(other.identity)).hasFree;
      expect(await other.coordinator.owner('p')).toBe(paused.id);
      expect(await hasFree()).toBe(false);
      await db.expire(paused);

      expect(await hasFree()).toBe(true);
      expect(await other.coordinator.owner('p')).toBeUndefined();
      expect(await paused.claim(['p'])).toEqual([]);
      expect(await other.claim(['p'])).toEqual(['p']);
      const { token } = await paused.store.loadKnown('p', []);
      const unchanged = { project: 'p', at: 7777, health: healthAt(7777), listings: new Map() };
      // It knows nothing of the other worker yet.
      await paused.store.commitPoll({ ...unchanged, token: '' });
      await paused.store.ownership.flush();
      expect(paused.store.ownership.tokens.has('p')).toBe(false);
      expect(await paused.see('p', { x: 'FAILED' })).toBeUndefined();
      expect(await paused.store.commitPoll({ ...unchanged, token })).toBeUndefined();
      const refused = { project: 'p' };
      expect(paused.log.of('store.commit_refused')).toMatchObject([refused, refused, refused]);
      const wasHeld = async () => (await paused.coordinator.renew(paused.identity)).wasHeld;
      expect([await wasHeld(), await wasHeld()]).toEqual([false, true]);
      expect((await other.store.loadHealth('p')).lastPollAt).toBe(1000);
      expect(await other.see('p', { x: 'FAILED' })).toHaveLength(1);

      const { workers } = await paused.coordinator.renew(paused.identity);
      expect(workers.map(({ id }) => id)).toEqual([paused.id, other.id].toSorted());
      const listed = await paused.coordinator.list(paused.id);
      expect(listed).toMatchObject([{ project: 'q', isRemoved: false }]);
    });

    it('keep a removed project, and get one with pending failures whose owner has no lease', async () => {
      await using db = await open();
      const first = await db.owner(['p', 'q', 'r']);
      await first.see('p', { x: 'FAILED' });
      await first.store.configureProjects(['r'], 2);
      expect(await first.see('q', { x: 'FAILED' })).toBeUndefined();
      const listed = await first.coordinator.list(first.id);
      expect(listed.toSorted((a, b) => a.project.localeCompare(b.project))).toMatchObject([
        { project: 'p', isRemoved: true, hasPending: true },
        { project: 'q', isRemoved: true, hasPending: false },
        { project: 'r', isRemoved: false, hasPending: false },
      ]);
      const second = await db.worker();
      await db.expire(first);
      expect(await second.claim([])).toEqual(['p']);
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
    it('get only those of their own projects', async () => {
      await using db = await open();
      const first = await db.owner(['p']);
      const second = await db.worker();
      await fail(first, 20);
      const due = { dueAt: 5000, limitPerProject: 12 };
      expect(await second.store.pendingFailures(due)).toEqual([]);
      expect(await first.store.pendingFailures(due)).toHaveLength(12);
      // The database has another token: this worker may have given the project back.
      const { tokens } = first.store.ownership;
      const token = tokens.get('p') ?? '';
      first.store.ownership.own('p', randomUUID());
      expect(await first.store.pendingFailures(due)).toEqual([]);
      first.store.ownership.own('p', token);

      await db.expire(first);
      await second.claim(['p']);
      expect(await first.store.pendingFailures(due)).toEqual([]);
      expect(await second.store.pendingFailures({ ...due, limitPerProject: 100 })).toHaveLength(20);
    });

    it('get those of a removed project', async () => {
      await using db = await open();
      const owner = await db.owner(['p', 'q']);
      for (const project of ['p', 'q']) await owner.see(project, { x: 'FAILED' });
      await owner.store.configureProjects(['p'], 2);
      for (const { project, token } of await owner.coordinator.list(owner.id)) {
        owner.store.ownership.own(project, token);
      }
      expect(await owner.store.pendingFailures({ limitPerProject: 1 })).toMatchObject([
        { project: 'p', removedAt: undefined },
        { project: 'q', removedAt: 2 },
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

    it('count each once, with at most 20 error_ids, even if several settle all of them', async () => {
      await using db = await open();
      const first = await db.owner(['p']);
      const workers = [first, await db.worker(), await db.worker()];
      const failures = await fail(first, 90);
      await Promise.all(failures.map((failure, index) => settle(first, failure, `E${index % 45}`)));
      // They have written lines before they lost the project.
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
  });

  describe('that read events', () => {
    const START = { transition: 0, settlement: 0, finish: 0 };
    const insert = (id: string) => `INSERT INTO evalwatch.transition
      (project_key, at, kind, from_status, to_status, record_id)
      SELECT project_key, 1, 'prompt', 'RUNNING', 'FAILED', '${id}' FROM evalwatch.project`;
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
      const ahead = { transition: 3, settlement: 0, finish: 0 };
      expect(await store.events(ahead, 10)).toEqual({
        transitions: [],
        settled: [],
        finishes: [],
        end: ahead,
      });
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
      // One change wins, and the digest is its own.
      const configured = async () =>
        (await second.store.snapshot()).projects.map(({ project }) => project);
      const { configured: digest } = await second.coordinator.renew(second.identity);
      expect(digest).toBe(digestOf(await configured()));
      await first.store.configureProjects(MANY, 99);
      expect(await configured()).toHaveLength(50);
    });

    it('add one anew that is deleted meanwhile, and restore one that is lost', async () => {
      await using db = await open();
      const worker = await db.worker();
      await worker.store.configureProjects(['p', 'q'], 1);
      await worker.store.configureProjects(['q'], 2);
      const pruning = await db.begin('DELETE FROM evalwatch.project WHERE removed_at IS NOT NULL');
      const configuring = worker.store.configureProjects(['p', 'q'], 3);
      await db.untilWaiting(1);
      await pruning.query('COMMIT');
      await configuring;
      const isAsConfigured = async () =>
        (await worker.coordinator.renew(worker.identity)).configured === digestOf(['q', 'p']);
      expect(await isAsConfigured()).toBe(true);
      await db.query("DELETE FROM evalwatch.project WHERE id = 'p'");
      expect(await isAsConfigured()).toBe(false);
      expect(await worker.store.restoreProjects(['p', 'q'], 4)).toBe(true);
      expect(await isAsConfigured()).toBe(true);
      expect(await worker.claim(['p', 'q'])).toEqual(['p', 'q']);
    });

    it('have the digest of no project at first, and compute it as the database does', async () => {
      await using db = await open();
      const { store, coordinator, identity } = await db.worker();
      const digest = async () => (await coordinator.renew(identity)).configured;
      expect(await digest()).toBe(digestOf([]));
      const odd = ['b', 'a', 'ä', 'B', '\u{1F600}', '\uFFFD', 'a b'];
      await store.configureProjects(odd, 1);
      expect(await digest()).toBe(digestOf(odd));
      expect(await digest()).toBe(digestOf(odd.toReversed()));
      expect(await digest()).not.toBe(digestOf(odd.slice(1)));
    });

    it('restore none while a reload is under way', async () => {
      await using db = await open();
      const { store } = await db.worker();
      const blocking = await db.begin('LOCK evalwatch.project');
      const reloading = store.configureProjects(['beta'], 1);

      expect(await store.restoreProjects(['alpha'], 2)).toBe(false);

      await blocking.query('COMMIT');
      await reloading;
      expect(await store.projects()).toEqual(['beta']);
    });
  });
});

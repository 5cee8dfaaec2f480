import { expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { randomNumbers } from '../../../proof/random.ts';
import type { FailureKey, ProjectSnapshot } from '../../../src/monitor/ports/store.ts';
import { healthAt } from '../../support/experiments.ts';
import { describePostgres, type Worker } from '../../support/postgres-store.ts';
import { withCause } from '../../support/failures.ts';

const PROJECTS = ['a', 'b', 'c', 'd', 'e', 'f'];
const STATUSES = ['PENDING', 'RUNNING', 'FAILED', 'QUEER'];
const RETENTION_MS = 10_000;

describePostgres('the snapshot of owned projects', (open) => {
  /** Each look at it is a minute later, so each scrape reads the totals. */
  function hurriedClock() {
    let now = 0;
    return { ...systemClock, monotonic: () => (now += 60_000) };
  }

  const inOrder = (projects: readonly ProjectSnapshot[]) =>
    projects.toSorted((one, other) => (one.project < other.project ? -1 : 1));

  /** Returns the projects of a worker from a full read. */
  async function fullOf({ store, coordinator, id }: Worker) {
    const { projects, backlog } = await store.snapshot();
    const owned = new Set((await coordinator.list(id)).map(({ project }) => project));
    return {
      projects: inOrder(projects.filter(({ project }) => owned.has(project))),
      configured: projects.length,
      backlog,
    };
  }

  async function ownedOf({ store }: Worker) {
    const { projects, ...rest } = await store.ownedSnapshot();
    return { projects: inOrder(projects), ...rest };
  }

  const settle = ({ store }: Worker, failure: FailureKey, errorId: string, at: number) =>
    store.settleFailure(
      failure,
      withCause({ errorInfo: { error_id: errorId, error_msg: 'x' }, errorMsgTruncated: false }),
      at,
    );

  /** Commits a poll that changed nothing. */
  async function pollUnchanged({ store }: Worker, project: string, at: number, isUp: boolean) {
    const { token } = await store.loadKnown(project, []);
    const health = { ...healthAt(at), up: isUp, consecutiveFailures: isUp ? 0 : 1 };
    await store.commitPoll({ project, at, health, token, listings: new Map() });
  }

  it.each([1, 2])(
    'equals a full read after each of 150 random operations (seed %i)',
    async (seed) => {
      const random = randomNumbers(seed);
      const pick = <Value>(values: readonly Value[]) =>
        values[Math.floor(random() * values.length)] as Value;
      await using db = await open();
      const first = await db.worker({ clock: hurriedClock() });
      const workers = [first, await db.worker({ clock: hurriedClock() })];
      let configured = PROJECTS;
      let at = 1000;
      await first.store.configureProjects(PROJECTS, at);

      /** Polls with all workers; only the commit of the owner is accepted. */
      const see = async () => {
        const project = pick(configured);
        const ids = ['x', 'y', 'z'].filter(() => random() < 0.8);
        const seen = Object.fromEntries(ids.map((id) => [id, pick(STATUSES)]));
        for (const worker of workers) await worker.see(project, seen, at);
      };
      const operations: Readonly<Record<string, () => Promise<unknown>>> = {
        see,
        'see another': see,
        'see a third': see,
        unchanged: async () => {
          const project = pick(configured);
          for (const worker of workers) {
            await pollUnchanged(worker, project, at, random() < 0.5);
          }
        },
        'a failed commit': async () => {
          const health = { ...healthAt(at), up: false, consecutiveFailures: 1 };
          for (const { store } of workers) store.keepHealth(pick(configured), health);
        },
        settle: async () => {
          const worker = pick(workers);
          const pending = await worker.store.pendingFailures({ limitPerProject: 3 });
          // It may be another worker that has written the line, and settles it late.
          for (const failure of pending) {
            await settle(pick(workers), failure, pick(['E', 'F', 'G']), at);
          }
        },
        claim: () => pick(workers).claim(configured.slice(0, 2)),
        release: async () => {
          const worker = pick(workers);
          const project = pick(configured);
          await worker.release([project]);
        },
        configure: async () => {
          configured = PROJECTS.filter(() => random() < 0.8);
          if (configured.length === 0) configured = ['a'];
          await pick(workers).store.configureProjects(configured, at);
        },
        prune: () => pick(workers).store.prune({ before: at - RETENTION_MS, firstDay: 0 }),
      };
      for (let round = 0; round < 150; round += 1) {
        at += 500;
        const name = pick(Object.keys(operations));
        await operations[name]?.();
        const worker = pick(workers);
        await worker.adopt();
        // What was read before an answer came can hide it until the next minute.
        await ownedOf(worker);
        expect(await ownedOf(worker), `${name}, round ${round}`).toEqual(await fullOf(worker));
      }
    },
  );

  it('reads no project again, but within a minute what others have settled and deleted', async () => {
    await using db = await open();
    let now = 0;
    const clock = { ...systemClock, monotonic: () => now };
    const first = await db.owner(['p', 'q'], { clock });
    const second = await db.worker();
    await first.see('p', { x: 'FAILED' }, 1000);
    const read = async () => {
      await first.adopt();
      const { projects } = await ownedOf(first);
      return projects.map(({ listings }) => listings);
    };
    const [p, q] = await read();
    const again = await read();
    expect(again[0]).toBe(p);
    expect(again[1]).toBe(q);
    const [failure] = await first.store.pendingFailures({ limitPerProject: 1 });
    if (failure === undefined) throw new Error('none is pending');
    await settle(second, failure, 'E', 5000);
    expect((await read())[0]).toBe(p);
    now += 60_000;
    const [changed, same] = await read();
    expect(same).toBe(q);
    expect(changed?.get('prompt')?.errors).toEqual([{ label: 'E', count: 1, firstSeenAt: 5000 }]);
    await second.store.prune({ before: 9000, firstDay: 0 });
    expect((await read())[0]).toBe(changed);
    now += 60_000;
    expect((await read())[0]?.get('prompt')?.errors).toEqual([]);
  });
});

import { vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type {
  Beat,
  Coordinator,
  NewestConfiguration,
  OwnedProject,
} from '../../../src/coordination/ports.ts';
import { projectsDigestOf } from '../../../src/coordination/projects-digest.ts';
import { createWorker, type Worker, type WorkerOptions } from '../../../src/coordination/worker.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { NEVER_POLLED } from '../../../src/monitor/memory.ts';
import { eventLog } from '../../support/monitor.ts';

export const LEASE = 10_000;
export const BEAT = LEASE / 4;

/** Creates the rows that workers share, in memory, with the rules of the database. */
export function sharedRows() {
  const leases = new Map<string, number>();
  const digests = new Map<string, string>();
  const owners = new Map<string, { readonly worker: string; readonly epoch: number }>();
  const configured = new Map<string, string>();
  /** Undefined while every worker finds its own digest. */
  let stored: NewestConfiguration | undefined;
  let epoch = 0;
  const now = () => performance.now();
  const isLive = (worker: string) => (leases.get(worker) ?? 0) > now();
  const projectsOf = (worker: string) =>
    [...owners].flatMap(([project, owner]) => (owner.worker === worker ? [project] : []));

  function beatOf(worker: string, digest: string): Beat {
    leases.set(worker, now() + LEASE);
    digests.set(worker, digest);
    const workers = [...leases.keys()].filter(isLive).map((id) => {
      return { id, version: '1', configDigest: digests.get(id) ?? '' };
    });
    const lease = { until: now() + LEASE, expiresAt: Date.now() + LEASE };
    // Projects without an owner have no row here.
    const newest = stored ?? { epoch: 0, digest: configured.get(worker) ?? '' };
    const own = [...owners.values()].filter((owner) => owner.worker === worker);
    const owned = { projects: own.length, epochs: own.reduce((sum, each) => sum + each.epoch, 0) };
    return { lease, workers, owned, hasFree: true, configured: newest };
  }

  const coordinator: Omit<Coordinator, 'grant' | 'owner'> = {
    join: async ({ id, configDigest }) => {
      for (const project of projectsOf(id)) owners.delete(project);
      return beatOf(id, configDigest);
    },
    beat: async ({ id, configDigest }) => (isLive(id) ? beatOf(id, configDigest) : undefined),
    leave: async (worker) => {
      leases.delete(worker);
      for (const project of projectsOf(worker)) owners.delete(project);
    },
    ownedBy: async (worker) =>
      new Map(projectsOf(worker).map((project) => [project, owners.get(project)?.epoch ?? 0])),
    claim: async (worker, projects, most) =>
      projects
        .filter((project) => !isLive(owners.get(project)?.worker ?? ''))
        .slice(0, isLive(worker) ? most : 0)
        .map((project): OwnedProject => {
          epoch += 1;
          owners.set(project, { worker, epoch });
          return { project, epoch, nextTickAt: undefined, health: NEVER_POLLED };
        }),
    release: async (worker, projects) => {
      for (const project of projects) {
        if (owners.get(project)?.worker === worker) owners.delete(project);
      }
    },
  };
  return {
    coordinator,
    owners,
    leases,
    projectsOf,
    configured,
    /** Stores the configuration of other projects. */
    store: (number: number) => {
      stored = { epoch: number, digest: 'of others' };
    },
    restoreProjects: async (projects: readonly string[], newest: number) => {
      if (stored?.epoch !== newest) return false;
      stored = { epoch: newest + 1, digest: projectsDigestOf(projects) };
      return true;
    },
  };
}

/** Creates a worker over shared rows. */
export function workerOver(
  rows: ReturnType<typeof sharedRows>,
  id: string,
  projects: readonly string[],
  changes: Partial<WorkerOptions> = {},
) {
  const log = eventLog();
  const polls = new Map<string, Promise<unknown>>();
  const changed: { taken: readonly string[]; dropped: readonly string[] }[] = [];
  const epochs = new Map<string, number>();
  let fault: 'none' | 'fails' | 'hangs' | 'releases fail' | 'claims break' = 'none';
  const worker: Worker = createWorker({
    id,
    version: '1',
    configDigest: () => 'd',
    leaseMs: LEASE,
    coordinator: faulty(rows.coordinator, () => fault),
    ownership: {
      own: (project, epoch) => epochs.set(project, epoch),
      epoch: (project) => epochs.get(project),
      disown: (project) => epochs.delete(project),
      flush: () => Promise.resolve(),
    },
    restoreProjects: rows.restoreProjects,
    clock: systemClock,
    emit: log.emit,
    onChange: ({ taken, dropped }) => {
      if (taken.length + dropped.length === 0) return;
      changed.push({ taken: taken.map(({ project }) => project), dropped });
    },
    runningPoll: (project) => polls.get(project),
    onError: (error) => {
      throw error;
    },
    ...changes,
  });
  worker.configure(projects);
  rows.configured.set(id, projectsDigestOf(projects));
  return {
    worker,
    log,
    polls,
    changed,
    epochs,
    may: () => projects.filter((project) => worker.mayPoll(project)),
    database: (next: typeof fault) => {
      fault = next;
    },
  };
}

type Calls = Omit<Coordinator, 'grant' | 'owner'>;

function faulty(calls: Calls, fault: () => string): Calls {
  const wrap =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const isRelease = (call as unknown) === calls.release;
      if (fault() === 'fails' || (isRelease && fault() === 'releases fail')) {
        throw new StoreError('io', 'no connection');
      }
      if (fault() === 'hangs') return await new Promise<never>(() => {});
      const result = await call(...args);
      const isClaim = (call as unknown) === calls.claim;
      if (isClaim && fault() === 'claims break') throw new StoreError('io', 'the connection broke');
      return result;
    };
  return {
    join: wrap(calls.join),
    beat: wrap(calls.beat),
    leave: wrap(calls.leave),
    ownedBy: wrap(calls.ownedBy),
    claim: wrap(calls.claim),
    release: wrap(calls.release),
  };
}

export const ids = (count: number) => Array.from({ length: count }, (_, n) => `p${n}`);

/** Fakes the time of a test, and returns the rows that its workers share. */
export function startOver() {
  vi.useFakeTimers({
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  });
  return sharedRows();
}

export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

/** Starts workers one after the other and waits until they own their shares. */
export async function crew(
  rows: ReturnType<typeof sharedRows>,
  count: number,
  projects: readonly string[],
) {
  const workers = ids(count).map((name) => workerOver(rows, name, projects));
  for (const { worker } of workers) await worker.start();
  await pass(3 * BEAT);
  return workers;
}

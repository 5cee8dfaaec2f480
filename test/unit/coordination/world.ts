import { vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Coordinator } from '../../../src/coordination/ports.ts';
import { digestOf, Worker, type WorkerOptions } from '../../../src/coordination/worker.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { NEVER_POLLED } from '../../../src/monitor/memory.ts';
import { eventLog } from '../../support/monitor.ts';

export const LEASE = 10_000;
export const BEAT = LEASE / 4;

/** A row of a project. */
interface ProjectRow {
  owner: string | undefined;
  token: string;
  isRemoved: boolean;
  hasPending: boolean;
}

/** Creates the rows that workers share, in memory, with the rules of the database. */
export function sharedRows() {
  const leases = new Map<string, number>();
  const digests = new Map<string, string>();
  const projects = new Map<string, ProjectRow>();
  let tokens = 0;
  const now = () => performance.now();
  const isLive = (worker: string) => (leases.get(worker) ?? 0) > now();
  const isFree = ({ owner }: ProjectRow) => owner === undefined || !isLive(owner);
  const nextToken = () => `token ${(tokens += 1)}`;
  const projectsOf = (worker: string) =>
    [...projects].flatMap(([project, { owner }]) => (owner === worker ? [project] : []));

  /** Adds these projects and marks others as removed, as a reload does. */
  function configure(ids: readonly string[]): void {
    for (const id of ids) {
      const known = projects.get(id);
      const row = { owner: known?.owner, hasPending: known?.hasPending ?? false };
      if (known?.isRemoved !== false) {
        projects.set(id, { ...row, token: nextToken(), isRemoved: false });
      }
    }
    for (const [id, row] of projects) {
      if (!row.isRemoved && !ids.includes(id)) {
        Object.assign(row, { isRemoved: true, token: nextToken() });
      }
    }
  }

  const coordinator = {
    renew: async ({ id, configDigest }) => {
      const wasHeld = isLive(id);
      leases.set(id, now() + LEASE);
      digests.set(id, configDigest);
      const workers = [...leases.keys()].filter(isLive).toSorted();
      const configured = [...projects]
        .filter(([, row]) => !row.isRemoved)
        .map(([project]) => project);
      return {
        workers: workers.map((worker) => {
          return { id: worker, version: '1', configDigest: digests.get(worker) ?? '' };
        }),
        wasHeld,
        configured: digestOf(configured),
        hasFree: [...projects.values()].some(
          (row) => isFree(row) && (!row.isRemoved || row.hasPending),
        ),
      };
    },
    leave: async (worker) => {
      leases.delete(worker);
      for (const project of projectsOf(worker)) {
        Object.assign(projects.get(project) ?? {}, { owner: undefined, token: nextToken() });
      }
    },
    claim: async ({ id, configDigest }, candidates) => {
      if (!isLive(id)) return;
      const sharing = [...leases.keys()].filter(
        (worker) => isLive(worker) && digests.get(worker) === configDigest,
      );
      const owned = projectsOf(id).filter((project) => projects.get(project)?.isRemoved === false);
      let missing = Math.ceil(candidates.length / sharing.length) - owned.length;
      for (const [project, row] of projects) {
        const isWanted = row.isRemoved
          ? row.hasPending
          : missing > 0 && candidates.includes(project);
        if (!isWanted || !isFree(row)) continue;
        if (!row.isRemoved) missing -= 1;
        Object.assign(row, { owner: id, token: nextToken() });
      }
    },
    release: async (worker, given) => {
      for (const [project, token] of given) {
        const row = projects.get(project);
        if (row?.owner !== worker || row.token !== token) continue;
        Object.assign(row, { owner: undefined, token: nextToken() });
      }
    },
    list: async (worker) =>
      projectsOf(worker).map((project) => {
        const { token = '', isRemoved = false, hasPending = false } = projects.get(project) ?? {};
        return { project, token, isRemoved, hasPending: isRemoved && hasPending };
      }),
    load: async (worker, asked) => {
      const owned = new Set(projectsOf(worker));
      return asked
        .filter((project) => owned.has(project))
        .map((project) => {
          const { token = '' } = projects.get(project) ?? {};
          const health = NEVER_POLLED;
          const snapshot = { project, configuredAt: 1, health, listings: new Map() };
          const figures = { snapshot, summaries: { prompt: {}, dataset: {} } };
          return { project, token, figures };
        });
    },
    grant: () => Promise.reject(new Error('no rate is shared')),
    owner: async (project) => projects.get(project)?.owner,
  } satisfies Coordinator;
  return { coordinator, configure, projects, leases, projectsOf, nextToken };
}

/** What a database does instead of answering: nothing, or it fails before or after it has done what was asked. */
type Fault =
  | 'none'
  | 'fails'
  | 'hangs'
  | 'loses health'
  | 'loses releases'
  | 'loses answers to releases'
  | 'loses answers to claims';

/** Creates a worker over shared rows, and configures its projects in them. */
export function workerOver(
  rows: ReturnType<typeof sharedRows>,
  id: string,
  projects: readonly string[],
  { digest = 'd', ...changes }: Partial<WorkerOptions> & { readonly digest?: string } = {},
) {
  const log = eventLog();
  const busy = new Set<string>();
  const committing = new Set<string>();
  const changed: { taken: readonly string[]; dropped: readonly string[] }[] = [];
  const tokens = new Map<string, string>();
  const stopping = new AbortController();
  let fault: Fault = 'none';
  let onFlush = () => {};
  const worker = new Worker({
    id,
    version: '1',
    leaseMs: LEASE,
    coordinator: faulty(rows.coordinator, () => fault),
    ownership: {
      tokens,
      own: (project, token) => tokens.set(project, token),
      disown: (project) => tokens.delete(project),
      isCommitting: (project) => committing.has(project),
      flush: async () => {
        if (fault === 'loses health') throw new StoreError('io', 'no connection');
        onFlush();
      },
    },
    restoreProjects: async (asked) => {
      rows.configure(asked);
      return true;
    },
    clock: systemClock,
    emit: log.emit,
    stopping: stopping.signal,
    onError: (error) => {
      throw error;
    },
    ...changes,
  });
  worker.onChange(({ taken, dropped }) => {
    if (taken.length + dropped.length === 0) return;
    changed.push({ taken: taken.map(({ project }) => project), dropped });
  });
  worker.isReporting = (project) => busy.has(project);
  rows.configure([...new Set([...rows.projects.keys(), ...projects])]);
  worker.configure(projects, digest);
  return {
    worker,
    log,
    busy,
    committing,
    changed,
    tokens,
    stopping,
    /** Refuses a commit of this project, as the store does. */
    refuse: (project: string) => {
      tokens.delete(project);
      worker.observe({ type: 'store.commit_refused', project });
    },
    may: () => [...rows.projects.keys()].filter((project) => worker.mayPoll(project)).toSorted(),
    database: (next: Fault) => {
      fault = next;
    },
    /** Sets what happens while health is stored. */
    duringFlush: (work: () => void) => {
      onFlush = work;
    },
  };
}

function faulty(
  calls: ReturnType<typeof sharedRows>['coordinator'],
  fault: () => Fault,
): Coordinator {
  const broken = () => new StoreError('io', 'no connection');
  const wrap =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const isRelease = (call as unknown) === calls.release;
      const isClaim = (call as unknown) === calls.claim;
      if (fault() === 'fails' || (isRelease && fault() === 'loses releases')) throw broken();
      if (fault() === 'hangs') return await new Promise<never>(() => {});
      const result = await call(...args);
      if (isRelease && fault() === 'loses answers to releases') throw broken();
      if (isClaim && fault() === 'loses answers to claims') throw broken();
      return result;
    };
  return {
    ...calls,
    renew: wrap(calls.renew),
    leave: wrap(calls.leave),
    claim: wrap(calls.claim),
    release: wrap(calls.release),
    list: wrap(calls.list),
    load: wrap(calls.load),
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
  await pass(4 * BEAT);
  return workers;
}

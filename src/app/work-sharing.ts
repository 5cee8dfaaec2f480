import { createHash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { OwnershipChange } from '../coordination/share.ts';
import { createSharedRate } from '../coordination/shared-rate.ts';
import { createWorker, type Worker } from '../coordination/worker.ts';
import type { FinishedPoll, Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { RateLimit } from '../monitor/ports/service.ts';
import type { OwnedSnapshot, PendingFailure, PendingFailureQuery } from '../monitor/ports/store.ts';
import type { PollRun } from '../monitor/ports/watched-project.ts';
import type { SharedStore } from '../store/open.ts';
import { version } from './process.ts';

/** Maximum number of polls for one run, when another process commits first. */
const MAX_ATTEMPTS = 3;

/** Shares the polling of projects with the other workers of the store. */
export interface WorkSharing {
  readonly worker: Worker;
  readonly observe: Observer;
  /** Sets the configuration that the worker compares with those of the others. */
  configure(config: Config): void;
  /** Calls the listener with each change of ownership, in the same turn of the event loop. */
  onOwnershipChange(listener: (change: OwnershipChange) => void): void;
  /** Returns the rate limit that all workers share; undefined if `perSecond` is 0. */
  rateLimit(perSecond: number): RateLimit | undefined;
  /**
   * Reads pending failures. Without `projects` in the query, only those of projects that are configured here or removed.
   * @throws {StoreError}
   */
  pendingFailures(query: PendingFailureQuery): Promise<readonly PendingFailure[]>;
  /** Returns the name of the worker that owns the project; undefined if none does. @throws {StoreError} */
  ownerOf(project: string): Promise<string | undefined>;
  /** Reads the projects that this worker owns, for a scrape. @throws {StoreError} */
  ownedSnapshot(): Promise<OwnedSnapshot>;
  /**
   * Calls `poll` at most three times, until it commits. `poll` resolves to undefined if its commit was refused. Stops
   * earlier when this worker no longer owns the project or the process stops; the result is then undefined.
   */
  poll(
    project: string,
    run: PollRun,
    poll: () => Promise<FinishedPoll | undefined>,
  ): Promise<FinishedPoll | undefined>;
}

export interface WorkSharingOptions {
  readonly shared: SharedStore;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Aborted when the process stops: no poll is tried again. */
  readonly stopping: AbortSignal;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

export function createWorkSharing(options: WorkSharingOptions): WorkSharing {
  const { shared, clock, emit, stopping, onError } = options;
  const { store, coordinator, name, leaseMs } = shared;
  const running = new Map<string, Promise<unknown>>();
  const listeners: ((change: OwnershipChange) => void)[] = [];
  let configDigest = '';
  let configured: ReadonlySet<string> = new Set();

  const worker = createWorker({
    id: name,
    version,
    configDigest: () => configDigest,
    leaseMs,
    coordinator,
    ownership: store,
    restoreProjects: (projects, newest) => store.restoreProjects(projects, clock.now(), newest),
    clock,
    emit,
    onChange: (change) => {
      for (const listener of listeners) listener(change);
    },
    runningPoll: (project) => running.get(project),
    onError,
  });

  /** Returns the projects whose failures this worker can report: without a key for a project it could only postpone them. */
  async function reportableProjects(): Promise<readonly string[]> {
    const failing = await store.failingProjects();
    return failing
      .filter(({ project, removed }) => removed || configured.has(project))
      .map(({ project }) => project);
  }

  async function pollUntilCommitted(
    project: string,
    poll: () => Promise<FinishedPoll | undefined>,
  ): Promise<FinishedPoll | undefined> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const finished = await poll();
      if (finished !== undefined) return finished;
      if (stopping.aborted || !worker.mayPoll(project)) return undefined;
    }
    return undefined;
  }

  return {
    worker,
    pendingFailures: async (query) => {
      const projects = query.projects ?? (await reportableProjects());
      return projects.length === 0 ? [] : await store.pendingFailures({ ...query, projects });
    },
    ownerOf: async (project) => (await coordinator.owner(project))?.worker,
    ownedSnapshot: () => store.ownedSnapshot(),
    observe: (event) => {
      if (
        event.type === 'store.commit_refused' &&
        event.reason === 'epoch' &&
        !event.isFromEarlierOwnership
      ) {
        worker.drop(event.project);
      }
    },
    configure: (config) => {
      configDigest = digestOf(config);
      configured = new Set(config.projects.map(({ id }) => id));
      worker.configure([...configured]);
    },
    onOwnershipChange: (listener) => {
      listeners.push(listener);
    },
    rateLimit: (perSecond) =>
      perSecond === 0
        ? undefined
        : createSharedRate({
            perSecond,
            grant: (...asked) => coordinator.grant(...asked),
            workers: () => worker.liveWorkers(),
            clock,
            onError,
          }),
    poll: async (project, run, poll) => {
      if (run.nextAt !== undefined) store.planTick(project, run.nextAt);
      const polling = pollUntilCommitted(project, poll);
      running.set(project, polling);
      try {
        return await polling;
      } finally {
        if (running.get(project) === polling) running.delete(project);
      }
    },
  };
}

/** Digest of the options that must be equal on all workers, without any secret. */
function digestOf({ service, missingAfter, jitterMs, projects }: Config): string {
  const watched = projects.map(({ id, schedule, timezone, datasets }) => {
    return [id, schedule, timezone, datasets];
  });
  const text = JSON.stringify([service.baseUrl, missingAfter, jitterMs, watched]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

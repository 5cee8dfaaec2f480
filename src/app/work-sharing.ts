import { createHash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { createSharedRate } from '../coordination/shared-rate.ts';
import { createWorker, type Worker } from '../coordination/worker.ts';
import type { FinishedPoll, Observer } from '../monitor/events.ts';
import type { Poller } from '../monitor/poller.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { RateLimit } from '../monitor/ports/rate-limit.ts';
import type { PollHealth, Store } from '../monitor/ports/store.ts';
import type { PolledProject, PollRun } from '../monitor/reading.ts';
import type { Shared } from '../store/open.ts';
import { version } from './version.ts';

/** A poll that others were faster than is tried so often. */
const ATTEMPTS = 3;

/** What it takes to poll beside other processes that share the store. */
export interface WorkSharing {
  readonly worker: Worker;
  readonly observe: Observer;
  /** To be called with each configuration. */
  configure(config: Config): void;
  /** Undefined where there is no limit. */
  rateLimit(perSecond: number): RateLimit | undefined;
  /** The store of the workers. It remembers snapshots, and returns pending failures only of projects configured here. */
  readonly store: Store;
  /** How the polls of a project went when the store was last shown; undefined if that was never. */
  health(project: string): PollHealth | undefined;
  /** As the poller's, for a project that this worker may poll. Once more if somebody else has committed it meanwhile. */
  poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined>;
}

export interface WorkSharingOptions {
  readonly shared: Shared;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly poller: () => Poller;
  readonly isStopping: () => boolean;
  /** Told in the next turn of the event loop that other projects may be polled than before, once for all of them. */
  readonly onChange: () => void;
  /** Told of errors that nobody expects. */
  readonly onError: (error: unknown) => void;
  /** It takes every project, whatever others would do. */
  readonly takesAll: boolean;
}

export function createWorkSharing(options: WorkSharingOptions): WorkSharing {
  const { shared, clock, emit, poller, isStopping, onChange, onError, takesAll } = options;
  const { store, coordinator, name, leaseMs } = shared;
  const running = new Map<string, Promise<unknown>>();
  let seen: ReadonlyMap<string, PollHealth> = new Map();
  let configDigest = '';
  let configured: ReadonlySet<string> = new Set();
  let isChanged = false;

  /** Whoever is told looks at all projects, and many can change hands one by one. */
  function noteChange(): void {
    if (isChanged) return;
    isChanged = true;
    setImmediate(() => {
      isChanged = false;
      onChange();
    });
  }

  const worker = createWorker({
    id: name,
    version,
    // No daemon may leave it a share: it takes what is free, and soon ends.
    configDigest: () => (takesAll ? '' : configDigest),
    leaseMs,
    coordinator,
    ownership: store,
    clock,
    emit,
    onChange: ({ taken, dropped }) => {
      for (const project of dropped) poller().forget(project);
      for (const { project, health } of taken) poller().watch(project, health);
      noteChange();
    },
    running: (project) => running.get(project),
    onError,
    ...(takesAll && { share: (projects: number) => projects }),
  });

  /** Returns the projects whose failures this worker can report: without a key for a project it could only postpone them. */
  async function reportable(): Promise<readonly string[]> {
    const failing = await store.failingProjects();
    return failing
      .filter(({ project, removed }) => removed || configured.has(project))
      .map(({ project }) => project);
  }

  async function pollUntilCommitted(
    project: PolledProject,
    run: PollRun,
  ): Promise<FinishedPoll | undefined> {
    if (run.nextAt !== undefined) store.planTick(project.id, run.nextAt);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const finished = await poller().poll(project, run);
      if (finished !== undefined) return finished;
      if (isStopping() || !worker.mayPoll(project.id)) return undefined;
    }
    return undefined;
  }

  return {
    worker,
    store: {
      ...store,
      snapshot: async () => {
        const snapshot = await store.snapshot();
        seen = new Map(snapshot.projects.map(({ project, health }) => [project, health]));
        return snapshot;
      },
      pendingFailures: async (query) => {
        const projects = query.projects ?? (await reportable());
        return projects.length === 0 ? [] : await store.pendingFailures({ ...query, projects });
      },
    },
    health: (project) => seen.get(project),
    observe: (event) => {
      if (event.type === 'store.commit_refused' && event.reason === 'epoch' && !event.isPast) {
        worker.lost(event.project);
      }
    },
    configure: (config) => {
      configDigest = digestOf(config);
      configured = new Set(config.projects.map(({ id }) => id));
      worker.configure([...configured]);
    },
    rateLimit: (perSecond) =>
      perSecond === 0
        ? undefined
        : createSharedRate({
            perSecond,
            grant: (...asked) => coordinator.grant(...asked),
            workers: () => worker.live(),
            clock,
            onError,
          }),
    poll: async (project, run) => {
      const poll = pollUntilCommitted(project, run);
      running.set(project.id, poll);
      try {
        return await poll;
      } finally {
        if (running.get(project.id) === poll) running.delete(project.id);
      }
    },
  };
}

/** Of what workers have to agree about; of no secret. */
function digestOf({ service, missingAfter, jitterMs, projects }: Config): string {
  const watched = projects.map(({ id, schedule, timezone, datasets }) => {
    return [id, schedule, timezone, datasets];
  });
  const text = JSON.stringify([service.baseUrl, missingAfter, jitterMs, watched]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

import { createHash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { createSharedRate } from '../coordination/shared-rate.ts';
import { type OwnershipChange, Worker } from '../coordination/worker.ts';
import type { FinishedPoll, Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { RateLimit } from '../monitor/ports/service.ts';
import type { OwnedSnapshot } from '../monitor/ports/store.ts';
import type { PollRun } from '../monitor/ports/watched-project.ts';
import type { SharedStore } from '../store/open.ts';
import { version } from './process.ts';

/** Maximum number of polls for one run, when another process commits first. */
const MAX_ATTEMPTS = 3;

export interface WorkSharingOptions {
  readonly shared: SharedStore;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Aborted when the process stops: no poll is tried again. */
  readonly stopping: AbortSignal;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

/** Shares the polling of projects with the other workers of the store. */
export class WorkSharing {
  readonly worker: Worker;
  readonly #options: WorkSharingOptions;
  readonly #polling = new Map<string, Promise<unknown>>();
  readonly #listeners: ((change: OwnershipChange) => void)[] = [];
  #isReporting: (project: string) => boolean = () => false;

  constructor(options: WorkSharingOptions) {
    const { shared, clock, emit, onError } = options;
    const { store, coordinator, name, leaseMs } = shared;
    this.#options = options;
    this.worker = new Worker({
      id: name,
      version,
      leaseMs,
      coordinator,
      ownership: store.ownership,
      restoreProjects: (projects) => store.restoreProjects(projects, clock.now()),
      clock,
      emit,
      onChange: (change) => {
        for (const listener of this.#listeners) listener(change);
      },
      isBusy: (project) => this.#polling.has(project) || this.#isReporting(project),
      onError,
    });
  }

  /** Sets the configuration that the worker compares with those of the others. */
  configure(config: Config): void {
    const projects = config.projects.map(({ id }) => id);
    this.worker.configure(projects, digestOf(config));
  }

  /** Calls the listener with each change of ownership, in the same turn of the event loop. */
  onOwnershipChange(listener: (change: OwnershipChange) => void): void {
    this.#listeners.push(listener);
  }

  /** Sets what says whether a failure of a project is being reported. */
  watchReports(isReporting: (project: string) => boolean): void {
    this.#isReporting = isReporting;
  }

  /** Returns the rate limit that all workers share; undefined if `perSecond` is 0. */
  rateLimit(perSecond: number): RateLimit | undefined {
    if (perSecond === 0) return undefined;
    const { shared, clock, onError } = this.#options;
    return createSharedRate({
      perSecond,
      grant: (...asked) => shared.coordinator.grant(...asked),
      workers: () => this.worker.liveWorkers(),
      clock,
      onError,
    });
  }

  /** Returns the name of the worker that owns the project; undefined if none does. @throws {StoreError} */
  async ownerOf(project: string): Promise<string | undefined> {
    return (await this.#options.shared.coordinator.owner(project))?.worker;
  }

  /** Reads the projects that this worker owns, for a scrape. @throws {StoreError} */
  async ownedSnapshot(): Promise<OwnedSnapshot> {
    return await this.#options.shared.store.ownedSnapshot();
  }

  /**
   * Calls `poll` at most three times, until it commits. `poll` resolves to undefined if its commit was refused. Stops
   * earlier when this worker no longer owns the project or the process stops; the result is then undefined.
   */
  async poll(
    project: string,
    run: PollRun,
    poll: () => Promise<FinishedPoll | undefined>,
  ): Promise<FinishedPoll | undefined> {
    const { ownership } = this.#options.shared.store;
    if (run.nextAt !== undefined) ownership.planTick(project, run.nextAt);
    const polling = this.#pollUntilCommitted(project, poll);
    this.#polling.set(project, polling);
    try {
      return await polling;
    } finally {
      if (this.#polling.get(project) === polling) this.#polling.delete(project);
      this.worker.ended();
    }
  }

  async #pollUntilCommitted(
    project: string,
    poll: () => Promise<FinishedPoll | undefined>,
  ): Promise<FinishedPoll | undefined> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const finished = await poll();
      if (finished !== undefined) return finished;
      if (this.#options.stopping.aborted || !this.worker.mayPoll(project)) return undefined;
    }
    return undefined;
  }
}

/** Digest of the options that must be equal on all workers, without any secret. */
function digestOf({ service, missingAfter, jitterMs, projects }: Config): string {
  const watched = projects.map(({ id, schedule, timezone, datasets }) => {
    return [id, schedule, timezone, datasets];
  });
  const text = JSON.stringify([service.baseUrl, missingAfter, jitterMs, watched]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

import type { PollHealth } from '../monitor/ports/store.ts';

// What the workers of one store share, and how each worker learns which projects it owns. Every asynchronous method rejects
// with a StoreError when the database cannot be reached in time. It may have been done then, and can be repeated.

/** One polling process. */
export interface WorkerIdentity {
  /** Name of the worker, unique across restarts. */
  readonly id: string;
  /** Version of the program. */
  readonly version: string;
  /** Workers with the same digest share its projects; empty for a worker that takes no share. */
  readonly configDigest: string;
}

/** The time for which a worker owns its projects. */
interface Lease {
  /** By `Clock.monotonic` of this process. Never later than the end in the database: counted from before the request. */
  readonly until: number;
  /** The same by `Clock.now`, for metrics, epoch ms. */
  readonly expiresAt: number;
}

/** The answer to a beat. */
export interface Beat {
  readonly lease: Lease;
  /** Workers with a lease, including this one, by id. */
  readonly workers: readonly WorkerIdentity[];
  /** Number of configured projects that this worker owns according to the database. */
  readonly owned: number;
}

export interface OwnedProject {
  readonly project: string;
  /** Number of this ownership, which no other ownership of any project has. */
  readonly epoch: number;
  /** The next poll that the last owner planned, epoch ms. */
  readonly nextTickAt: number | undefined;
  readonly health: PollHealth;
}

/** Requests that may be sent: the first in `startsInMs`, the others `spacingMs` apart. */
interface RateSlice {
  readonly count: number;
  readonly startsInMs: number;
  readonly spacingMs: number;
}

interface ProjectOwner {
  readonly worker: string;
  /** Time until its lease expires by the database's clock, ms. */
  readonly remainingMs: number;
}

/** The rows through which workers agree. Time is that of the database, and no state is kept in a session. */
export interface Coordinator {
  /** Begins a lease. The worker then owns nothing, also if it owned projects under an earlier lease. */
  join(worker: WorkerIdentity): Promise<Beat>;
  /** Renews the lease; undefined if it had expired: the worker then owns nothing and has to join. */
  beat(worker: WorkerIdentity): Promise<Beat | undefined>;
  /** Gives every project back and ends the lease. */
  leave(worker: string): Promise<void>;
  /**
   * Takes at most `max` of these configured projects that no worker with a lease owns, those first whose tick has been due
   * for the longest time. Takes none without a lease. Concurrent claims take different projects.
   */
  claim(worker: string, projects: readonly string[], max: number): Promise<readonly OwnedProject[]>;
  /**
   * Gives back those of these projects that the database records as owned by this worker. Their commits are refused from
   * then on, so flush before.
   */
  release(worker: string, projects: readonly string[]): Promise<void>;
  /**
   * Takes up to `wanted` places of the next `withinMs` in the request queue of all workers, which has `perSecond` places a
   * second. A place that is not used is lost, and a place that has passed must not be used.
   */
  grant(wanted: number, perSecond: number, withinMs: number): Promise<RateSlice>;
  /** Returns the owner of a project; undefined if no worker with a lease owns it. */
  owner(project: string): Promise<ProjectOwner | undefined>;
}

/**
 * The store's view of the projects that its worker owns, by which it refuses late commits. Call `own` and `disown` in the same
 * turn of the event loop as the poller's `watch` and `forget`. After `store.commit_refused` with the reason `epoch`, disown
 * and release the project: the store may have missed an answer that changed its ownership.
 */
export interface Ownership {
  /** Makes later commits of this project under this epoch. */
  own(project: string, epoch: number): void;
  /** Refuses later commits of this project and drops what waits to be written. */
  disown(project: string): void;
  /** Stores this tick, epoch ms, with the next commit of the project. */
  planTick(project: string, at: number): void;
  /** Writes the waiting outcomes of polls that changed nothing. @throws {StoreError} */
  flush(): Promise<void>;
}

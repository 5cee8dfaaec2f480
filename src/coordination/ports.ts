import type { PollHealth } from '../monitor/ports/store.ts';

// Ports through which workers share a store and record who owns which project. Every asynchronous method rejects with a
// StoreError if the database does not answer in time. The change may then have been made; every method can be repeated.

/** One polling process. */
export interface WorkerIdentity {
  /** Name of the worker, unique across restarts. */
  readonly id: string;
  /** Version of evalwatch. */
  readonly version: string;
  /** Workers with the same digest share its projects; empty for a worker that takes no share. */
  readonly configDigest: string;
}

/** Time until which a worker owns its projects, by two clocks. */
interface LeaseEnd {
  /** By `Clock.monotonic` of this process, counted from before the request, so never later than in the database. */
  readonly until: number;
  /** By `Clock.now`, for metrics, epoch ms. */
  readonly expiresAt: number;
}

/** The newest change of the configured projects. */
export interface NewestConfiguration {
  /** Number of the change. */
  readonly epoch: number;
  /** Digest of the projects (projects-digest.ts); empty while the change is being made, and before the first one. */
  readonly digest: string;
}

/**
 * Totals of the projects that a worker owns; a removed one has no owner. If a promoted standby has lost the last changes of
 * ownership, what it has lost has greater epochs than what it has in its place: the sum differs even if the number does not.
 */
export interface OwnershipTotals {
  readonly projects: number;
  /** Sum of the epochs of the ownerships. */
  readonly epochs: number;
}

/** Result of `join` and `beat`. */
export interface Beat {
  readonly lease: LeaseEnd;
  /** Workers with a valid lease, including this one, sorted by id. */
  readonly workers: readonly WorkerIdentity[];
  /** Totals of the projects that this worker owns according to the database. */
  readonly owned: OwnershipTotals;
  /** Whether a configured project had no owner with a lease, so that a claim may find one. */
  readonly hasFree: boolean;
  readonly configured: NewestConfiguration;
}

export interface OwnedProject {
  readonly project: string;
  /** Number of this ownership, unique across all projects. */
  readonly epoch: number;
  /** Time of the next poll as stored with the last commit, epoch ms. */
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

/** Rows through which workers coordinate. All times are those of the database. No state is kept in a session. */
export interface Coordinator {
  /** Begins a lease. The worker owns no projects afterwards, even if it owned some under an earlier lease. */
  join(worker: WorkerIdentity): Promise<Beat>;
  /** Renews the lease; undefined if it has expired: the worker then owns nothing and must call `join`. */
  beat(worker: WorkerIdentity): Promise<Beat | undefined>;
  /** Gives every project back and ends the lease. */
  leave(worker: string): Promise<void>;
  /** Returns the projects that this worker owns according to the database, with their epochs. */
  ownedBy(worker: string): Promise<ReadonlyMap<string, number>>;
  /**
   * Claims at most `max` of these projects that no worker with a lease owns, the longest overdue first. Claims nothing
   * without a lease. Concurrent claims get different projects.
   */
  claim(worker: string, projects: readonly string[], max: number): Promise<readonly OwnedProject[]>;
  /**
   * Releases those of these projects that the database records as owned by this worker. Later commits of them are refused,
   * so call `flush` first.
   */
  release(worker: string, projects: readonly string[]): Promise<void>;
  /**
   * Reserves up to `wanted` places within the next `withinMs` in the request queue that all workers share, which has
   * `perSecond` places a second. An unused place is lost. A place must not be used before its time.
   */
  grant(wanted: number, perSecond: number, withinMs: number): Promise<RateSlice>;
  /** Returns the owner of a project; undefined if no worker with a lease owns it. */
  owner(project: string): Promise<ProjectOwner | undefined>;
}

/**
 * The store's view of the projects that its worker owns, by which it refuses late commits. Call `own` and `disown` in the same
 * turn of the event loop as the poller's `watch` and `unwatch`. After `store.commit_refused` with the reason `epoch`, disown
 * and release the project: the store may have missed an answer that changed its ownership.
 */
export interface Ownership {
  /** Makes later commits of this project under this epoch. */
  own(project: string, epoch: number): void;
  /** Returns the epoch under which this project is owned; undefined if it is not. */
  epoch(project: string): number | undefined;
  /** Refuses later commits of this project and drops what waits to be written. */
  disown(project: string): void;
  /** Stores this tick, epoch ms, with the next commit of the project. */
  planTick(project: string, at: number): void;
  /** Writes the waiting outcomes of polls that changed nothing. @throws {StoreError} */
  flush(): Promise<void>;
}

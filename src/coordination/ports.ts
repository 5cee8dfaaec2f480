import type { PollHealth } from '../monitor/ports/store.ts';

// What the workers of one store share, and how each of them knows what is its own. Every method that resolves rejects
// with a StoreError when the database cannot be reached in time, and has then perhaps been done: all can be repeated.

/** One process that polls. */
export interface WorkerIdentity {
  /** Never used by another process. */
  readonly id: string;
  /** Of the program. */
  readonly version: string;
  /** Workers that have the same one share its projects; empty for one that takes no share. */
  readonly configDigest: string;
}

/** How long a worker may count on what it owns. */
interface Lease {
  /** By `Clock.monotonic` of this process, counted from before the database was asked: never later than its end there. */
  readonly until: number;
  /** The same by `Clock.now`, for metrics. */
  readonly expiresAt: number;
}

/** What a renewed lease brings along. */
export interface Beat {
  readonly lease: Lease;
  /** All whose lease has not run out, this one among them, by id. */
  readonly workers: readonly WorkerIdentity[];
  /** Configured projects that are this worker's, by the rows. */
  readonly owned: number;
}

export interface OwnedProject {
  readonly project: string;
  /** Unlike that of any other ownership of any project. */
  readonly epoch: number;
  /** The tick that was planned last, epoch ms. */
  readonly nextTickAt: number | undefined;
  readonly health: PollHealth;
}

/** Requests that may be sent: the first in `startsInMs`, each other one `spacingMs` after the one before. */
interface RateSlice {
  readonly count: number;
  readonly startsInMs: number;
  readonly spacingMs: number;
}

interface ProjectOwner {
  readonly worker: string;
  /** Until its lease runs out, ms, by the database's clock. */
  readonly remainingMs: number;
}

/** The rows through which workers agree. Time is the database's; none of it is kept in a session. */
export interface Coordinator {
  /** Begins a lease. What it owned before, if it had lost one, it owns no more. */
  join(worker: WorkerIdentity): Promise<Beat>;
  /** Renews it; undefined if it had run out: then nothing is owned any more, and it has to join. */
  beat(worker: WorkerIdentity): Promise<Beat | undefined>;
  /** Gives everything back and ends the lease. */
  leave(worker: string): Promise<void>;
  /**
   * Takes at most `most` of these configured projects that nobody with a lease owns, those first whose tick is due
   * longest; none without a lease. Others that claim at the same time get other ones.
   */
  claim(
    worker: string,
    projects: readonly string[],
    most: number,
  ): Promise<readonly OwnedProject[]>;
  /**
   * Gives back those of them that are its own, also those that it did not know it owned. Their commits are refused from
   * then on: flush before.
   */
  release(worker: string, projects: readonly string[]): Promise<void>;
  /**
   * Takes up to `wanted` places in the one queue of requests of all workers, `perSecond` in a second, of those in the
   * next `withinMs`. A place that is not used is lost; one that has passed must not be.
   */
  grant(wanted: number, perSecond: number, withinMs: number): Promise<RateSlice>;
  /** Who polls a project; undefined if nobody with a lease does. */
  owner(project: string): Promise<ProjectOwner | undefined>;
}

/**
 * What a store has to be told of its worker's projects, so that it can refuse what comes from before: in the same turn in
 * which the poller takes a project over (`watch`) or forgets it. Who sees `store.commit_refused` with the reason `epoch`
 * disowns the project and releases it: the store may have missed an answer that changed its own ownership.
 */
export interface Ownership {
  /** From now on commits of this project are made under this epoch. */
  own(project: string, epoch: number): void;
  /** From now on they are refused, and what waits to be written is dropped. */
  disown(project: string): void;
  /** The tick to be stored with this project's next commit, epoch ms. */
  planTick(project: string, at: number): void;
  /** Writes the outcomes of polls that changed nothing and still wait for it. @throws {StoreError} */
  flush(): Promise<void>;
}

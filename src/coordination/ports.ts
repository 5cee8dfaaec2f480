import type { ProjectFigures } from '../monitor/ports/store.ts';

// Ports through which workers share a store and record who owns which project. Every asynchronous method rejects with a
// StoreError if the database does not answer in time. The change may then have been made, or may yet be made.

/** One polling process. */
export interface WorkerIdentity {
  /** Name of the worker, unique across restarts. */
  readonly id: string;
  /** Version of evalwatch. */
  readonly version: string;
  /** Workers with the same digest share its projects; empty for a worker that takes no share. */
  readonly configDigest: string;
}

/** What a worker learns when it renews its lease. */
export interface Beat {
  /** Workers with a valid lease, including this one, sorted by id. */
  readonly workers: readonly WorkerIdentity[];
  /** Whether this worker held its lease until now, by the clock of the database. */
  readonly wasHeld: boolean;
  /** MD5 of the ids of the configured projects, sorted by their bytes, a line each; empty for none. */
  readonly configured: string;
  /** Whether a project to claim had no owner with a lease. */
  readonly hasFree: boolean;
}

/** A project that this worker owns according to the database. */
export interface ListedProject {
  readonly project: string;
  readonly token: string;
  /** Whether it has left the configuration. */
  readonly isRemoved: boolean;
  /** Whether failures of a removed project are pending; false for others. */
  readonly hasPending: boolean;
}

export interface OwnedProject {
  readonly project: string;
  readonly token: string;
  readonly figures: ProjectFigures;
}

/** Requests that may be sent: the first in `startsInMs`, the others `spacingMs` apart. */
interface RateSlice {
  readonly count: number;
  readonly startsInMs: number;
  readonly spacingMs: number;
}

/** Rows through which workers coordinate. All times are those of the database. No state is kept in a session. */
export interface Coordinator {
  /** Renews the lease, or begins one. What the worker owns stays as it is. */
  renew(worker: WorkerIdentity): Promise<Beat>;
  /** Gives every project back and ends the lease. */
  leave(worker: string): Promise<void>;
  /**
   * Claims projects that no worker with a lease owns: configured ones among these, until the worker owns its
   * share of them; and removed ones with pending failures. Claims nothing without a lease. Concurrent claims get
   * different projects.
   */
  claim(worker: WorkerIdentity, projects: readonly string[]): Promise<void>;
  /** Releases those of these projects that still have the given token. Call `flush` first: later commits are refused. */
  release(worker: string, tokens: ReadonlyMap<string, string>): Promise<void>;
  /** Returns what this worker owns according to the database. */
  list(worker: string): Promise<readonly ListedProject[]>;
  /** Returns more about those of these projects that this worker owns. */
  load(worker: string, projects: readonly string[]): Promise<readonly OwnedProject[]>;
  /**
   * Reserves up to `wanted` places within the next `withinMs` in the request queue that all workers share, which has
   * `perSecond` places a second. An unused place is lost. A place must not be used before its time.
   */
  grant(wanted: number, perSecond: number, withinMs: number): Promise<RateSlice>;
  /** Returns the worker that owns a project; undefined if none with a lease does. */
  owner(project: string): Promise<string | undefined>;
}

/**
 * The tokens of the projects that this worker owns. The store commits a poll only under the token of its project, and each
 * commit of a listing replaces it. Call `own` and `disown` in the same turn of the event loop as the poller's `watch` and
 * `unwatch`. A project whose commit is refused is disowned, and `store.commit_refused` emitted.
 */
export interface Ownership {
  /** The projects with their tokens, as of now. */
  readonly tokens: ReadonlyMap<string, string>;
  /** Without figures, for a removed project, scrapes do not show it. */
  own(project: string, token: string, figures?: ProjectFigures): void;
  /** Refuses later commits of this project and drops what waits to be written. */
  disown(project: string): void;
  /** Whether a commit is under way that may change the token of this project. */
  isCommitting(project: string): boolean;
  /** Writes the waiting outcomes of polls that changed nothing. @throws {StoreError} */
  flush(): Promise<void>;
}

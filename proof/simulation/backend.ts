import type { StoreReader } from '../../src/monitor/ports/store.ts';
import type { OpenStore, OpenStoreOptions } from '../../src/store/open.ts';
import type { Machine } from './machine.ts';

/** Time shorter than any statement takes to its server, ms. */
export const BEFORE_ARRIVAL_MS = 0.05;

/** Access of one process to the store. */
export interface Access {
  readonly open: (options: OpenStoreOptions) => Promise<OpenStore>;
  /** Ends the access as a kill of the process does: requests that were not sent are never executed. */
  kill(): void;
}

/** A change of the configured projects. */
export interface ConfiguredProjects {
  readonly projects: readonly string[];
  /** Those that were not configured before. */
  readonly added: readonly string[];
  /** Whether the change before it had to have a certain number, as for a restoration, or a further round of a reload. */
  readonly isConditional: boolean;
}

export interface AccessOptions {
  readonly machine: Machine;
  /** Whether the process is cut off: nothing that it or the store sends now arrives. */
  readonly isCutOff: () => boolean;
  /** Called when a write is executed, before its answer arrives. */
  readonly onWritten: () => void;
  /** Called when the disk refuses a write. */
  readonly onRefused: () => void;
  /**
   * Called when a commit of a poll with listings is sent. Returns whether a standby takes over first, so that the commit
   * goes to the standby.
   */
  readonly onCommitting: (project: string) => boolean;
  /** Called when a commit of a poll with listings is stored. */
  readonly onCommitted: (project: string) => void;
  /**
   * Called when a claim of projects is sent. Returns whether a standby takes over first: the claim then goes to the standby,
   * and its answer is lost.
   */
  readonly onClaimSent: () => boolean;
  /** Called before the database executes a claim of projects. Returns the function to call with the claimed projects. */
  readonly onClaiming: () => (projects: readonly string[]) => void;
  /** Called when the database has changed the configured projects. */
  readonly onConfigured: (change: ConfiguredProjects) => void;
  /** Called when the process has claimed a failure of a project that is configured in the database. */
  readonly onFailureClaimed: (project: string) => void;
  /** Called when the postponement of a failure is held up. */
  readonly onPostponementHeldUp: () => void;
  /** Called when a request is lost, or answered late. */
  readonly onTrouble: () => void;
  /** Called when a request other than a commit fails or is answered late: its worker may stop polling for a moment. */
  readonly onUnanswered: () => void;
  /** Called when a release of projects fails within two seconds: its worker polls nothing until the next answered beat. */
  readonly onReleaseFailed: () => void;
  /** Called when a beat is sent, which begins or renews the lease. */
  readonly onBeat: () => void;
  /** Called when the database begins or renews the lease of the process. */
  readonly onRenewed: () => void;
  /** Called when the process has read the leases of all workers. */
  readonly onLeasesRead: (leases: readonly ReadLease[]) => void;
  /** Called when the process ends its lease. */
  readonly onLeft: () => void;
  /** Called when a request for places in the queue of requests has failed. */
  readonly onGrantFailed: () => void;
}

/** The lease of a worker, as another one reads it. */
export interface ReadLease {
  readonly worker: string;
  /** Whether it holds by the clock of the database, and its worker counts as living. */
  readonly holds: boolean;
  /** Epoch µs: each renewal changes it. */
  readonly expires_us: number;
  /** Time left by the clock of the database. */
  readonly remaining_ms: number;
}

/** Probabilities of faults of the disk or the database, for each request. */
export interface StoreWeather {
  /** The request fails and is not executed. A database also loses the statement or its answer, each half as often. */
  readonly fails: number;
  /** The request takes up to 6 s. A statement to a database is also held up for up to 90 s, with the same probability. */
  readonly slow: number;
}

/** The store of a simulation, for any number of processes. */
export interface Backend extends AsyncDisposable {
  access(options: AccessOptions): Promise<Access>;
  openReader(): Promise<StoreReader>;
  /** Loses the statements and answers that are under way. Undefined if the store has no connections. */
  readonly loseStatements?: () => void;
  /**
   * Creates a standby with everything that is stored now. Returns the function that makes it take over: what was stored
   * later is lost, and so is what is under way then. Undefined if the store can have no standby.
   */
  readonly makeStandby?: () => () => Promise<void>;
}

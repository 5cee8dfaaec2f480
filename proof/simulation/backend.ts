import type { OpenStore, OpenStoreOptions } from '../../src/store/open.ts';
import type { StoreReader } from '../../src/monitor/ports/store.ts';
import type { Machine } from './machine.ts';

/** Less than any statement takes to its server, ms. */
export const BEFORE_ARRIVAL_MS = 0.05;

/** What a process has of the store. */
export interface Access {
  readonly open: (options: OpenStoreOptions) => Promise<OpenStore>;
  /** Ends it as a kill of the process does: what has not been sent is never done. */
  kill(): void;
}

export interface AccessOptions {
  readonly machine: Machine;
  /** Whether nothing that is sent now arrives, from the process or from the store. */
  readonly isCutOff: () => boolean;
  /** Called when a statement is done, and its answer is not there yet. */
  readonly onWritten: () => void;
  /** Called when the disk refuses a write. */
  readonly onRefused: () => void;
  /**
   * Called when a commit of a poll with listings is on its way. Returns whether a standby takes over before it is sent, so that
   * it goes to the standby.
   */
  readonly onCommitting: (project: string) => boolean;
  /** Called when a commit of a poll with listings is stored. */
  readonly onCommitted: (project: string) => void;
  /**
   * Called when a claim of projects is on its way. Returns whether a standby takes over before it is sent. It goes to the
   * standby then, and its answer is lost.
   */
  readonly onClaimSent: () => boolean;
  /** Called when the database is about to give the process projects; the result is called with those that it has given. */
  readonly onClaiming: () => (projects: readonly string[]) => void;
  /** Called when the database has changed the configured projects, with those that it did not regard as configured before. */
  readonly onConfigured: (added: readonly string[]) => void;
  /** Called when the database has given the process a failure of a project that is configured. */
  readonly onFailureClaimed: (project: string) => void;
  /** Called when the postponement of a failure is held up. */
  readonly onPostponementHeldUp: () => void;
  /** Called when a request is lost, or answered late. */
  readonly onTrouble: () => void;
  /** Called when a request that is no commit has failed, or was answered late: its worker may stop to poll for a moment. */
  readonly onUnanswered: () => void;
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
  /** By the clock of the database. */
  readonly remaining_ms: number;
}

/** How bad disk or database are: probabilities of each request. */
export interface StoreWeather {
  /** Nothing is done, and the process learns it. */
  readonly fails: number;
  /** It takes up to seconds. */
  readonly slow: number;
}

/** The store of a simulation, for any number of processes. */
export interface Backend extends AsyncDisposable {
  access(options: AccessOptions): Promise<Access>;
  openReader(): Promise<StoreReader>;
  /** Loses what is under way. Undefined if the store has no connections. */
  readonly loseStatements?: () => void;
  /**
   * Returns the function by which a standby takes the place of the server, which has everything until now: what is stored
   * later is lost, and so is what is under way then. Undefined if the store has none.
   */
  readonly makeStandby?: (() => () => void) | undefined;
}

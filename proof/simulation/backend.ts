import type { StoreReader } from '../../src/monitor/ports/store.ts';
import type { OpenStore, OpenStoreOptions } from '../../src/store/open.ts';
import type { Hooks } from './process.ts';

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
  access(process: Hooks): Promise<Access>;
  openReader(): Promise<StoreReader>;
  /** Loses the statements and answers that are under way. Undefined if the store has no connections. */
  readonly loseStatements?: () => void;
  /**
   * Creates a standby with everything that is stored now. Returns the function that makes it take over: what was stored
   * later is lost, and so is what is under way then. Undefined if the store can have no standby.
   */
  readonly makeStandby?: () => () => Promise<void>;
}

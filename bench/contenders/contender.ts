/** What a contender is asked to do, in a process of its own; also the argument of the one in Python. */
export interface Task {
  /** The service's base address. */
  readonly baseUrl: string;
  /** Polled one after the other or side by side, as a contender likes best. */
  readonly projects: readonly string[];
  /** Empty, for whatever is stored. */
  readonly directory: string;
}

/** What one round of polls has come to: the same for the same bodies. */
export type Outcome = Readonly<Record<string, string | number>>;

export interface Contender {
  /** What has to happen before each round and is not measured. */
  prepare?(): Promise<void>;
  /** Polls every project once. */
  poll(): Promise<Outcome>;
  close(): Promise<void>;
}

export type OpenContender = (task: Task) => Promise<Contender>;

/** Connections that are used side by side, by everyone. */
export const CONCURRENCY = 32;
export const API_KEY = 'bench-key-0123456789';

export function listingPath(baseUrl: string, project: string): string {
  return `${new URL(baseUrl).pathname}/v2/projects/${project}/prompts/`;
}

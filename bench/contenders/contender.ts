/** Task of a contender, which runs in a process of its own. The Python one receives it as JSON too. */
export interface Task {
  readonly baseUrl: string;
  /** Ids of the projects, which a contender polls in sequence or in parallel. */
  readonly projects: readonly string[];
  /** Empty directory for stored files. */
  readonly directory: string;
}

/** Result of one round of polls, the same for the same bodies. */
export type Outcome = Readonly<Record<string, string | number>>;

export interface Contender {
  /** Does the unmeasured work before each round. */
  prepare?(): Promise<void>;
  /** Polls every project once, or renders a scrape. */
  poll(): Promise<Outcome>;
  close(): Promise<void>;
}

export type OpenContender = (task: Task) => Promise<Contender>;

/** Number of parallel connections of each contender. */
export const CONCURRENCY = 32;
export const API_KEY = 'bench-key-0123456789';

export function listingPath(baseUrl: string, project: string): string {
  return `${new URL(baseUrl).pathname}/v2/projects/${project}/prompts/`;
}

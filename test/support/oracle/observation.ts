/** Everything to compare once the world stands still and polling has ended. */
export interface Observation {
  /** Listings that the simulated service has served, in order. */
  readonly journal: readonly JournalEntry[];
  /** API key that clients sent; an id that contains it is not usable. */
  readonly key: string;
  readonly missingAfter: number;
  readonly projects: readonly { readonly id: string; readonly datasets: boolean }[];
  /** Each process that polled, in order. */
  readonly runs: readonly Run[];
  /** Times when the store could not be written, so that served listings may not be stored. */
  readonly troubles: readonly TimeSpan[];
  /** `transitions --json`, `failures --json` and `status --json`. */
  readonly transitions: readonly TransitionRow[];
  readonly failures: readonly FailureRow[];
  readonly statuses: readonly StatusRow[];
  /** The last scrape, by name and labels as in `name{a="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
  /** Counts at the end, after the last row above was settled. */
  readonly errorTotals: ErrorTotals;
  /** Whether the service may have sent this error_info shortly before `at`, epoch ms. */
  readonly gave: (promptId: string, errorInfo: unknown, at: number) => boolean;
}

/** Counted failures, by project and error_id. */
export type ErrorTotals = ReadonlyMap<string, number>;

/** Epoch ms. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** One process. */
export interface Run {
  /** Epoch ms. */
  readonly startedAt: number;
  /** Epoch ms, Infinity while it runs. */
  readonly endedAt: number;
  /** Whether SIGKILL ended it. */
  readonly killed: boolean;
  readonly lines: readonly LogLine[];
}

export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly event?: string;
  readonly project?: string;
  readonly kind?: string;
  readonly prompt_id?: string;
  readonly dataset_id?: string;
  readonly from?: string;
  readonly to?: string;
  readonly transition_id?: number;
  readonly error_info?: unknown;
  readonly reason?: string;
}

export interface TransitionRow {
  readonly transition_id: number;
  readonly time: string;
  readonly project: string;
  readonly prompt_id?: string;
  readonly dataset_id?: string;
  readonly from: string;
  readonly to: string;
}

export interface FailureRow {
  readonly transition_id: number;
  readonly time: string;
  readonly project: string;
  readonly prompt_id: string;
  readonly error_info: unknown;
  readonly reason: string | null;
  readonly settled: boolean;
}

export interface StatusRow {
  readonly project: string;
  readonly prompt_id: string;
  readonly status: string;
  readonly since: string;
  readonly missing: number;
}

/** One kind of record of one project. */
export interface Listing {
  readonly project: string;
  readonly kind: 'prompt' | 'dataset';
}

/** What a client can read of a listing. */
export interface ServedListing extends Listing {
  /**
   * Id, status and experiment of each item as they are in the JSON, null if absent. In the order of the body, unusable ones
   * included.
   */
  readonly items: readonly (readonly [id: unknown, status: unknown, experiment?: unknown])[];
}

/** A listing that was sent completely, so that its client may have read it. */
export interface JournalEntry extends ServedListing {
  /** Counts from 1, in the order in which the answers ended. */
  readonly seq: number;
  /** When the body was created, epoch ms. */
  readonly producedAt: number;
  /** When the operating system accepted the last byte, epoch ms. */
  readonly finishedAt: number;
  /** Whether the answer was a 304. */
  readonly unchanged: boolean;
}

export function listingsOf({ projects }: Pick<Observation, 'projects'>): readonly Listing[] {
  return projects.flatMap(({ id: project, datasets }) => [
    { project, kind: 'prompt' as const },
    ...(datasets ? [{ project, kind: 'dataset' as const }] : []),
  ]);
}

export function nameOf({ project, kind }: Listing): string {
  return `${kind}s of "${project}"`;
}

export function isOf({ project, kind }: Listing, row: TransitionRow): boolean {
  return row.project === project && row[`${kind}_id`] !== undefined;
}

/** Returns the processes that ran at this time. */
export function runsAt(runs: readonly Run[], at: number): readonly Run[] {
  return runs.filter(({ startedAt, endedAt }) => startedAt <= at && at <= endedAt);
}

export function isInTrouble({ troubles }: Pick<Observation, 'troubles'>, at: number): boolean {
  return troubles.some(({ from, to }) => at >= from && at <= to);
}

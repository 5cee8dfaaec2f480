import type { JournalEntry } from '../../../src/simulator/world/journal.ts';
import type { State } from './model.ts';

/** Everything that there is to compare once the world stands still and nothing polls any more. */
export interface Observation {
  /** What was known before, where an earlier comparison ended; absent if nothing was. */
  readonly before?: Before;
  /** What the simulated service served since then, in order. */
  readonly journal: readonly JournalEntry[];
  /** The key that clients sent: an id that holds it is no usable id. */
  readonly key: string;
  readonly missingAfter: number;
  readonly projects: readonly { readonly id: string; readonly datasets: boolean }[];
  /** Each process that polled, in order; of polls only the lines since {@link before} are needed. */
  readonly runs: readonly Run[];
  /** When the store could not be written, and what was served need not be stored. */
  readonly troubles?: readonly TimeSpan[];
  /** `transitions --json`, `failures --json` and `status --json`. */
  readonly transitions: readonly TransitionRow[];
  readonly failures: readonly FailureRow[];
  readonly statuses: readonly StatusRow[];
  /** The last scrape, by name and labels as in `name{a="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
  /** As of the end, when every row above was settled; absent where nobody looked. */
  readonly errorTotals?: ErrorTotals;
  /** Whether the service could have told this of a prompt shortly before that time, epoch ms. */
  readonly gave: (promptId: string, errorInfo: unknown, at: number) => boolean;
}

/** Counted failures, by project and error_id. */
export type ErrorTotals = ReadonlyMap<string, number>;

/** Where an earlier comparison ended. */
export interface Before {
  /** By {@link nameOf}. */
  readonly states: ReadonlyMap<string, readonly State[]>;
  /** The last that it has seen. */
  readonly transitionId: number;
}

/** Epoch ms. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** One process. */
export interface Run {
  /** Epoch ms: what happened from then until the next one started, or until it ended, was its doing. */
  readonly startedAt: number;
  /** Epoch ms; of each of several workers, which run side by side, and infinite while it runs. */
  readonly endedAt?: number;
  /** By SIGKILL. */
  readonly killed: boolean;
  /** By SIGSTOP for longer than its lease: others did its work, and it may do some of it again. */
  readonly stopped?: boolean;
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

type Kind = JournalEntry['kind'];

/** One kind of record of one project. */
export interface Listing {
  readonly project: string;
  readonly kind: Kind;
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

/** The runs that something of this time may belong to: of workers those that ran, otherwise one. */
export function runsAt(runs: readonly Run[], at: number): readonly Run[] {
  const begun = runs.filter(({ startedAt }) => startedAt <= at);
  const workers = begun.filter(({ endedAt = -Infinity }) => at <= endedAt);
  return runs.some(({ endedAt }) => endedAt !== undefined) ? workers : begun.slice(-1);
}

export function isInTrouble({ troubles = [] }: Pick<Observation, 'troubles'>, at: number): boolean {
  return troubles.some(({ from, to }) => at >= from && at <= to);
}

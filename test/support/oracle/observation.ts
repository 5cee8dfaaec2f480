import type { JournalEntry } from '../../../src/simulator/journal.ts';

/** Everything that there is to compare once the world stands still and nothing polls any more. */
export interface Observation {
  /** What the simulated service served, in order. */
  readonly journal: readonly JournalEntry[];
  /** The key that clients sent: an id that holds it is no usable id. */
  readonly key: string;
  readonly missingAfter: number;
  readonly projects: readonly { readonly id: string; readonly datasets: boolean }[];
  /** Each process that polled, in order. */
  readonly runs: readonly Run[];
  /** `transitions --json`, `failures --json` and `status --json`. */
  readonly transitions: readonly TransitionRow[];
  readonly failures: readonly FailureRow[];
  readonly statuses: readonly StatusRow[];
  /** The last scrape, by name and labels as in `name{a="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
  /** Whether the service could have told this of a prompt shortly before that time, epoch ms. */
  readonly gave: (promptId: string, errorInfo: unknown, at: number) => boolean;
}

/** One process. */
export interface Run {
  /** Epoch ms: what happened from then until the next one started was its doing. */
  readonly startedAt: number;
  /** By SIGKILL. */
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

export type Kind = JournalEntry['kind'];

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

export function isOf({ project, kind }: Listing, row: TransitionRow): boolean {
  return row.project === project && row[`${kind}_id`] !== undefined;
}

/** The run that something of this time belongs to. */
export function runAt(runs: readonly Run[], at: number): Run | undefined {
  return runs.findLast(({ startedAt }) => startedAt <= at);
}

/** Whether this run told of a poll of the project that ended at this time (epoch ms) or later. */
export function toldOfPollSince(run: Run | undefined, project: string, at: number): boolean {
  return (run?.lines ?? []).some(
    (line) =>
      (line.event === 'poll.completed' || line.event === 'poll.failed') &&
      line.project === project &&
      Date.parse(line.time) >= at,
  );
}

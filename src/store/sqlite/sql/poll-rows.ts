import type { AddedDurations } from '../../../domain/limits.ts';
import type { KnownRecord } from '../../../domain/record.ts';
import type { Kind } from '../../../domain/status.ts';
import type { Summary } from '../../../domain/summary.ts';
import type { Changes, Transition } from '../../../domain/transition.ts';
import type { PollCommit } from '../../../monitor/ports/store.ts';
import { LabelPlaces } from '../../labels.ts';
import type { NextExperiment, Outcome } from '../../outcome.ts';
import type { OwnColumns } from '../../rows.ts';

/** A `PollCommit`, or a part of it, as it is sent to the thread of the store. */
export interface PollPart extends Omit<PollCommit, 'listings' | 'known' | 'durations'> {
  /** The summaries after the poll, in JSON; undefined for a listing that does not change. */
  readonly prompts: string | undefined;
  readonly datasets: string | undefined;
  /** Whether another part of the same poll precedes this one in the transaction. */
  readonly isContinued: boolean;
  readonly listings: readonly ListingRows[];
}

export interface ListingRows {
  readonly kind: Kind;
  readonly records: readonly OwnColumns[];
  readonly labels: readonly string[];
  /** For each record the places of experiment, dataset and metric in `labels`, from 1; 0 for none. */
  readonly places: Uint32Array;
  readonly transitions: readonly Transition[];
  /** Durations that end with transitions of prompts; empty for datasets. */
  readonly durations: readonly AddedDurations[];
  /** Experiments of prompts that the poll changes; empty for datasets. */
  readonly experiments: readonly NextExperiment[];
}

/** Maximum number of rows in a message to the thread: copying them takes about a millisecond on either side. */
export const PART_ROWS = 1000;

/** Counts the rows that a poll writes besides its project's own. */
export function countRows({ listings, durations = [] }: PollCommit, outcome: Outcome): number {
  let count = durations.length + outcome.experiments.length;
  for (const { records, transitions } of listings.values()) {
    count += records.length + transitions.length;
  }
  return count;
}

/** Cuts a poll into parts that are committed in one transaction; most polls are one part. */
export function* toParts(poll: PollCommit, outcome: Outcome): Generator<PollPart, void> {
  const { project, at, health, token } = poll;
  const { summaries } = outcome;
  const prompts = toJson(summaries.get('prompt'));
  const datasets = toJson(summaries.get('dataset'));
  const whole = { project, at, health, token, prompts, datasets };
  if (countRows(poll, outcome) <= PART_ROWS) {
    const listings = Array.from(poll.listings, ([kind, changes]) =>
      toRows(poll, outcome, kind, changes, [0, PART_ROWS]),
    );
    yield { ...whole, isContinued: false, listings };
    return;
  }
  let isContinued = false;
  for (const [kind, changes] of poll.listings) {
    const lists: (readonly unknown[])[] = [changes.records, changes.transitions];
    if (kind === 'prompt') lists.push(outcome.experiments);
    const length = Math.max(1, ...lists.map((list) => list.length));
    for (let start = 0; start < length; start += PART_ROWS) {
      const rows = toRows(poll, outcome, kind, changes, [start, start + PART_ROWS]);
      yield { ...whole, isContinued, listings: [rows] };
      isContinued = true;
    }
  }
}

function toJson(summary: Summary | undefined): string | undefined {
  return summary && JSON.stringify(summary);
}

function toRows(
  { durations = [] }: PollCommit,
  { experiments }: Outcome,
  kind: Kind,
  changes: Changes,
  [start, end]: readonly [number, number],
): ListingRows {
  const labels = new LabelPlaces();
  const records = changes.records.slice(start, end);
  const places = new Uint32Array(3 * records.length);
  for (const [index, { experiment, dataset, metric }] of records.entries()) {
    places[3 * index] = labels.of(experiment) ?? 0;
    places[3 * index + 1] = labels.of(dataset) ?? 0;
    places[3 * index + 2] = labels.of(metric) ?? 0;
  }
  return {
    kind,
    records: records.map(toRow),
    labels: labels.texts,
    places,
    transitions: changes.transitions.slice(start, end),
    durations: start === 0 && kind === 'prompt' ? durations : [],
    experiments: kind === 'prompt' ? experiments.slice(start, end) : [],
  };
}

function toRow(record: KnownRecord): OwnColumns {
  return [
    record.id,
    record.status,
    record.statusRaw ?? null,
    record.name ?? null,
    record.timestamp ?? null,
    record.since,
    record.missing,
    record.gone ? 1 : 0,
  ];
}

import type { StoreSnapshot } from '../../../src/monitor/ports/store.ts';
import {
  type ErrorTotals,
  type FailureRow,
  type Listing,
  type Observation,
  type TransitionRow,
  isOf,
  listingsOf,
} from './observation.ts';

const PROMPT_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN'];

/** Compares the counters of /metrics with the transitions that they count. */
export function checkTotals(observation: Observation): readonly string[] {
  return listingsOf(observation).flatMap((listing) => [
    ...checkPairs(listing, observation),
    ...checkLastFailure(listing, observation),
  ]);
}

function checkPairs(listing: Listing, { transitions, samples }: Observation): readonly string[] {
  const { project, kind } = listing;
  const statuses = kind === 'prompt' ? PROMPT_STATUSES : [...PROMPT_STATUSES, 'NONE'];
  const rows = transitions.filter((row) => isOf(listing, row));
  return ['NEW', ...statuses].flatMap((from) =>
    statuses.flatMap((to) => {
      if (from === to) return [];
      const series = `evalwatch_${kind}_transitions_total{project="${project}",from="${from}",to="${to}"}`;
      const count = rows.filter((row) => row.from === from && row.to === to).length;
      const shown = samples.get(series);
      return shown === count ? [] : [`${series} is ${shown}, transitions: ${count}`];
    }),
  );
}

function checkLastFailure(
  listing: Listing,
  { transitions, samples }: Observation,
): readonly string[] {
  const series = `evalwatch_${listing.kind}_last_failure_timestamp_seconds{project="${listing.project}"}`;
  const times = transitions
    .filter((row) => isOf(listing, row) && row.to === 'FAILED')
    .map(({ time }) => Date.parse(time));
  const expected = times.length === 0 ? undefined : Math.max(...times);
  const value = samples.get(series);
  const shown = value === undefined ? undefined : Math.round(value * 1000);
  return shown === expected ? [] : [`${series} is ${shown} ms, last failure: ${expected} ms`];
}

/** Counters that never decrease or disappear, whatever happens to the daemon between two scrapes. */
const LASTING =
  /^evalwatch_(?:(?:prompt|dataset)_transitions|prompts_gone|prompt_failures)_total\{/;

export function checkGrowth(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): readonly string[] {
  return [...before].flatMap(([series, count]) =>
    LASTING.test(series) && !((after.get(series) ?? -1) >= count)
      ? [`${series} went from ${count} to ${after.get(series)}`]
      : [],
  );
}

export function storedErrorTotals({ projects }: StoreSnapshot): ErrorTotals {
  return new Map(
    projects.flatMap(({ project, listings }) =>
      (listings.get('prompt')?.errors ?? []).map(
        ({ label, count }) => [keyOf(project, label), count] as const,
      ),
    ),
  );
}

/**
 * Compares the counted failures with the settled ones. Services of the tests have fewer error_ids than a project may have
 * labels, and none with a character that is escaped.
 */
export function checkErrorTotals({ failures, errorTotals }: Observation): readonly string[] {
  const settled = failures.filter((row) => row.settled);
  const groups = Map.groupBy(settled, (row) => keyOf(row.project, errorIdOf(row)));
  return [...new Set([...groups.keys(), ...errorTotals.keys()])].flatMap((key) => {
    const counted = errorTotals.get(key);
    const expected = groups.get(key)?.length;
    return counted === expected
      ? []
      : [`failures with the error_id ${key}: ${counted} counted, ${expected} settled`];
  });
}

function errorIdOf({ error_info }: FailureRow): string {
  const { error_id } = (error_info ?? {}) as { readonly error_id?: string | null };
  return error_id ?? 'none';
}

function keyOf(project: string, errorId: string): string {
  return `${errorId} of "${project}"`;
}

/**
 * Checks rules that hold whatever was served: transition numbers are unique, and the transitions of a record form a chain
 * that ends at the status and time shown.
 */
export function checkChains({ transitions, statuses }: Observation): readonly string[] {
  const differences: string[] = [];
  const ordered = transitions.toSorted((one, other) => one.transition_id - other.transition_id);
  const seen = new Set<number>();
  const last = new Map<string, TransitionRow>();
  for (const row of ordered) {
    const record = recordOf(row);
    const before = last.get(record);
    last.set(record, row);
    if (seen.has(row.transition_id)) differences.push(`twice: ${JSON.stringify(row)}`);
    seen.add(row.transition_id);
    if (before !== undefined && before.to !== row.from) {
      differences.push(`no chain: ${JSON.stringify(row)} after ${JSON.stringify(before)}`);
    }
    if (before !== undefined && before.time > row.time) {
      differences.push(`out of order: ${JSON.stringify(row)} after ${JSON.stringify(before)}`);
    }
  }
  for (const row of statuses) {
    const move = last.get(recordOf(row));
    if (move !== undefined && (move.to !== row.status || move.time !== row.since)) {
      differences.push(`${JSON.stringify(row)} does not follow from ${JSON.stringify(move)}`);
    }
  }
  return differences;
}

function recordOf(row: { project: string; prompt_id?: string; dataset_id?: string }): string {
  return JSON.stringify([row.project, row.prompt_id, row.dataset_id]);
}

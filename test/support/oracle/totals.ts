import { isOf, type Listing, listingsOf, type Observation } from './observation.ts';

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

import { dayOf, middleOf, type DurationCount } from './durations.ts';
import type { UnfinishedStatus } from './status.ts';

/** How long a prompt may stay in a status if nothing is configured or learned, ms. */
export const DEFAULT_LIMIT_MS: Readonly<Record<UnfinishedStatus, number>> = {
  PENDING: 60 * 60 * 1000,
  RUNNING: 4 * 60 * 60 * 1000,
};

/** Number of days before today whose durations count. */
export const LEARNED_DAYS = 30;
const MIN_DURATIONS = 20;
const MIN_DAYS = 3;
const MIN_AGE_DAYS = 7;
/** Number of days with hung prompts that must not raise the limit. */
const HUNG_DAYS = 2;
/** On a hung day some prompt takes this many times as long as on the third-longest day. */
const HUNG_FACTOR = 3;
const LIMIT_FACTOR = 2.5;
/** Number of durations of which the third-longest is the 99th percentile. */
const ENOUGH_DURATIONS = 300;
const MIN_LIMIT_MS = 5 * 60 * 1000;

export interface LimitContext {
  readonly status: UnfinishedStatus;
  /** Epoch ms. */
  readonly now: number;
  /** Longest interval between two scheduled polls of the project, ms. */
  readonly maxIntervalMs: number;
}

/**
 * Learns from the durations of a project's prompts how long a prompt may stay in the status, in ms
 * (docs/specification.md#learned-limits). Uses whole days only, so the limit changes once a day, at 0:00 UTC. Undefined
 * until enough durations are known.
 */
export function learnLimit(
  counts: readonly DurationCount[],
  { status, now, maxIntervalMs }: LimitContext,
): number | undefined {
  const today = dayOf(now);
  const known = counts.filter(({ day }) => day < today && day >= today - LEARNED_DAYS);
  const longest = longestByDay(known);
  if (total(known) < MIN_DURATIONS || longest.size < MIN_DAYS) return undefined;
  const age = today - Math.min(...longest.keys());
  if (age < MIN_AGE_DAYS) return undefined;
  // Longer ones are yet to come if little is known. With a heavy tail (α = 3) they grow by the cube root.
  const missing = Math.max(LEARNED_DAYS / age, ENOUGH_DURATIONS / total(known));
  const longestYet = usualLongest([...longest.values()]) * Math.cbrt(Math.max(1, missing));
  const learned = toSeconds(LIMIT_FACTOR * longestYet);
  // Below twice the interval, a prompt that two polls find would exceed the limit.
  const min = Math.max(MIN_LIMIT_MS, 2 * maxIntervalMs + 60_000);
  return Math.max(min, Math.min(learned, 12 * DEFAULT_LIMIT_MS[status]));
}

/**
 * Returns the median time in the status over the last 30 days, in ms: of the days before today, or with today while those
 * have too few durations. Undefined until enough durations are known.
 */
export function typicalDuration(counts: readonly DurationCount[], now: number): number | undefined {
  const today = dayOf(now);
  const known = counts.filter(({ day }) => day >= today - LEARNED_DAYS);
  const past = known.filter(({ day }) => day < today);
  const used = total(past) < MIN_DURATIONS ? known : past;
  return total(used) < MIN_DURATIONS ? undefined : toSeconds(median(used));
}

/** Returns the third-longest of the days' longest durations, leaving out hung days. */
function usualLongest(longest: readonly number[]): number {
  const sorted = longest.toSorted((a, b) => b - a);
  const third = sorted[HUNG_DAYS] ?? 0;
  const usual = sorted.filter((duration) => duration <= HUNG_FACTOR * third);
  return usual[HUNG_DAYS] ?? usual.at(-1) ?? 0;
}

function longestByDay(counts: readonly DurationCount[]): ReadonlyMap<number, number> {
  const longest = new Map<number, number>();
  for (const { day, bucket } of counts) {
    longest.set(day, Math.max(longest.get(day) ?? 0, middleOf(bucket)));
  }
  return longest;
}

function total(counts: readonly DurationCount[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}

function median(counts: readonly DurationCount[]): number {
  const half = total(counts) / 2;
  let passed = 0;
  for (const { bucket, count } of counts.toSorted((a, b) => a.bucket - b.bucket)) {
    passed += count;
    if (passed >= half) return middleOf(bucket);
  }
  return 0;
}

function toSeconds(ms: number): number {
  return Math.round(ms / 1000) * 1000;
}

import { dayOf, longestOf, type DurationCount } from './durations.ts';
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
  const days = [...longest.keys()];
  if (total(known) < MIN_DURATIONS || days.length < MIN_DAYS) return undefined;
  if (Math.min(...days) > today - MIN_AGE_DAYS) return undefined;
  const third = [...longest.values()].toSorted((a, b) => b - a)[2] ?? 0;
  const learned = Math.min(Math.max(3 * quantile(known, 0.99), 2 * third), 3 * third);
  return Math.min(Math.max(learned, 2 * maxIntervalMs + 60_000), 12 * DEFAULT_LIMIT_MS[status]);
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
  return total(used) < MIN_DURATIONS ? undefined : quantile(used, 0.5);
}

function longestByDay(counts: readonly DurationCount[]): ReadonlyMap<number, number> {
  const longest = new Map<number, number>();
  for (const { day, bucket } of counts) {
    longest.set(day, Math.max(longest.get(day) ?? 0, longestOf(bucket)));
  }
  return longest;
}

function total(counts: readonly DurationCount[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}

/** Returns the duration that this share of the durations does not exceed, in ms. */
function quantile(counts: readonly DurationCount[], share: number): number {
  const wanted = share * total(counts);
  let passed = 0;
  for (const { bucket, count } of counts.toSorted((a, b) => a.bucket - b.bucket)) {
    passed += count;
    if (passed >= wanted) return longestOf(bucket);
  }
  return 0;
}

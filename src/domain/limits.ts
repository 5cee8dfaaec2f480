import { isUnfinished, type PromptStatus, type UnfinishedStatus } from './status.ts';
import type { Transition } from './transition.ts';

/** How long a prompt may stay in a status: a time in ms, learned from the project's own prompts, or without a limit. */
export type ConfiguredLimit = number | 'auto' | 'off';

/** What is expected of the prompts of a project, as configured (docs/configuration.md). */
export interface Expectations {
  readonly limits: Readonly<Record<UnfinishedStatus, ConfiguredLimit>>;
  /** Share of the prompts that finish which may fail; undefined without an objective. */
  readonly maxFailureRatio: number | undefined;
}

/** Where a limit comes from; `default` applies until enough durations are known to learn one. */
export const LIMIT_SOURCES = ['learned', 'configured', 'default', 'off'] as const;

/** What is expected of the prompts of a project in one status. */
export interface StateExpectation {
  /** How long a prompt may stay in the status, ms; undefined without a limit. */
  readonly limitMs: number | undefined;
  readonly source: (typeof LIMIT_SOURCES)[number];
  /** Median time in the status over the last 30 days, ms; undefined while too few durations are known. */
  readonly typicalMs: number | undefined;
}

/** The same for each status in which prompts can be stuck. */
export type StateExpectations = Readonly<Record<UnfinishedStatus, StateExpectation>>;

/** Returns the expectations of a configured project; undefined until its durations were read for the first time. */
export type ExpectationsOf = (project: string) => StateExpectations | undefined;

/** Returns what is expected of a prompt in this status; undefined if nothing is, or while it is unknown. */
export function expectationIn(
  status: PromptStatus,
  expectations: StateExpectations | undefined,
): StateExpectation | undefined {
  return isUnfinished(status) ? expectations?.[status] : undefined;
}

/** Whether a prompt that has been in the status for so long, in ms, is stuck: beyond the limit. */
export function isStuck(waitingMs: number, expectation: StateExpectation | undefined): boolean {
  return expectation?.limitMs !== undefined && waitingMs > expectation.limitMs;
}

/** Number of durations in one bucket, of the prompts that left one status on one day. */
export interface DurationCount {
  /** The day as days since 1970-01-01 UTC. */
  readonly day: number;
  /** Bucket of the duration, see {@link bucketOf}. */
  readonly bucket: number;
  readonly count: number;
}

/** Durations of one poll, to be added to the stored ones. */
export interface AddedDurations extends DurationCount {
  readonly status: UnfinishedStatus;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Upper bounds of two neighbouring buckets differ by this factor. */
const GROWTH = 1.15;
/** Number of the last bucket, which also counts every longer duration: about ten days. */
const LAST_BUCKET = 98;

/** Returns the UTC day of a time in epoch ms, as days since 1970-01-01. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Returns the bucket that counts a duration in ms: 0 up to one second, then each 15 % longer than the one before. */
export function bucketOf(ms: number): number {
  if (ms <= 1000) return 0;
  return Math.min(LAST_BUCKET, Math.ceil(Math.log(ms / 1000) / Math.log(GROWTH)));
}

/**
 * Returns the duration in ms that a bucket stands for. It differs by at most 7.3 % from each duration in the bucket, except
 * in the first bucket, which stands for 1 s, and in the last one, which has no upper bound.
 */
export function middleOf(bucket: number): number {
  return bucket === 0 ? 1000 : 1000 * GROWTH ** (bucket - 0.5);
}

/**
 * Counts how long prompts were in the statuses that they left with these transitions of one poll
 * (docs/specification.md#durations). Leaves out stays that began before `steadySince` (by default none), because polls
 * were missing while they lasted, stays of prompts that were missing from listings, and stays of 0 ms, because the clock was
 * set back. Times are epoch ms.
 */
export function countDurations(
  transitions: readonly Transition[],
  at: number,
  steadySince = -Infinity,
): readonly AddedDurations[] {
  const day = dayOf(at);
  const counts = new Map<string, AddedDurations>();
  for (const { from, heldMs = 0, wasMissing = false } of transitions) {
    const isKnown = heldMs > 0 && !wasMissing && at - heldMs >= steadySince;
    if (!isKnown || !isUnfinished(from)) continue;
    const bucket = bucketOf(heldMs);
    const key = `${from} ${bucket}`;
    const count = (counts.get(key)?.count ?? 0) + 1;
    counts.set(key, { status: from, day, bucket, count });
  }
  return [...counts.values()];
}

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

/** What the durations of a project's prompts in one status show: the expectation without a configured limit. */
export interface LearnedState extends StateExpectation {
  readonly limitMs: number;
  readonly source: 'learned' | 'default';
}

/** Learns from the durations of the last 30 days and of today (docs/specification.md#learned-limits). */
export function learn(counts: readonly DurationCount[], context: LimitContext): LearnedState {
  const typicalMs = learnTypical(counts, context.now);
  const limitMs = learnLimit(counts, context);
  return limitMs === undefined
    ? { limitMs: DEFAULT_LIMIT_MS[context.status], source: 'default', typicalMs }
    : { limitMs, source: 'learned', typicalMs };
}

/** Returns what is expected in a status, given the configured limit and what was learned. */
export function expectationOf(
  configured: ConfiguredLimit,
  learned: LearnedState,
): StateExpectation {
  const { limitMs, source, typicalMs } = learned;
  if (configured === 'auto') return { limitMs, source, typicalMs };
  return configured === 'off'
    ? { limitMs: undefined, source: 'off', typicalMs }
    : { limitMs: configured, source: 'configured', typicalMs };
}

/** Returns the limit in ms, of whole days only, so that it changes once a day, at 0:00 UTC; undefined if too little is known. */
function learnLimit(
  counts: readonly DurationCount[],
  { status, now, maxIntervalMs }: LimitContext,
): number | undefined {
  const today = dayOf(now);
  const known = counts.filter(({ day }) => day < today && day >= today - LEARNED_DAYS);
  const longest = new Map<number, number>();
  for (const { day, bucket } of known) {
    longest.set(day, Math.max(longest.get(day) ?? 0, middleOf(bucket)));
  }
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

/** Returns the third-longest of the days' longest durations, leaving out hung days. */
function usualLongest(longest: readonly number[]): number {
  const sorted = longest.toSorted((a, b) => b - a);
  const third = sorted[HUNG_DAYS] ?? 0;
  const usual = sorted.filter((duration) => duration <= HUNG_FACTOR * third);
  return usual[HUNG_DAYS] ?? usual.at(-1) ?? 0;
}

/** Returns the median in ms, of the days before today, or with today while those have too few durations. */
function learnTypical(counts: readonly DurationCount[], now: number): number | undefined {
  const today = dayOf(now);
  const known = counts.filter(({ day }) => day >= today - LEARNED_DAYS);
  const past = known.filter(({ day }) => day < today);
  const used = total(past) < MIN_DURATIONS ? known : past;
  const half = total(used) / 2;
  if (2 * half < MIN_DURATIONS) return undefined;
  let passed = 0;
  const median = used
    .toSorted((a, b) => a.bucket - b.bucket)
    .find(({ count }) => (passed += count) >= half);
  return median && toSeconds(middleOf(median.bucket));
}

function total(counts: readonly DurationCount[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}

function toSeconds(ms: number): number {
  return Math.round(ms / 1000) * 1000;
}

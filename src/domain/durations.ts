import { isUnfinished, type UnfinishedStatus } from './status.ts';
import type { Transition } from './transition.ts';

/** Upper bounds of two neighbouring buckets differ by this factor. */
const GROWTH = 1.15;
/** Number of the last bucket, which also counts every longer duration: about ten days. */
export const LAST_BUCKET = 98;
const DAY_MS = 24 * 60 * 60 * 1000;

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
  {
    at,
    steadySince = -Infinity,
  }: { readonly at: number; readonly steadySince?: number | undefined },
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

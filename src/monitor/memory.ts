import type { AnomalySummary } from '../domain/record.ts';
import type { Kind } from '../domain/status.ts';
import type { PollFailure } from './events.ts';
import type { ListingAnswer, ListingTable, ListOptions } from './ports/service.ts';
import type { PollHealth } from './ports/store.ts';

/** What the poller remembers of a project from one poll to the next. */
export interface ProjectMemory {
  health: PollHealth;
  /** Replaced, not cleared, when another service answers: a running poll then keeps what it compares with. */
  listings: Map<Kind, ListingMemory>;
  /** Anomalies of the last listing, committed or not. Only anomalies that differ from them are logged. */
  readonly anomalies: Map<Kind, readonly AnomalySummary[]>;
}

/** Summary of the last committed listing of one kind, kept to recognise it when it comes again. */
export interface ListingMemory {
  /** Undefined after an `invalid_response`, until the next full answer, and if there was none. */
  readonly etag: string | undefined;
  readonly table: ListingTable;
  /** False after a failed commit, until a changed listing is stored. Until then changed listings are read whole. */
  readonly isStored: boolean;
  readonly complete: boolean;
  readonly anomalies: readonly AnomalySummary[];
  /** Number of records in it. */
  readonly size: number;
  /** Ids of records that it lacked and that are not gone. */
  readonly missing: readonly string[];
  /** Monotonic time of the last full answer. */
  readonly fullAt: number;
  /** Whether the last answer was full, not a 304. */
  readonly isFull: boolean;
}

/** Age of the last full answer up to which several 304 in a row are accepted (docs/specification.md#unchanged-listings). */
const MAX_TRUST_MS = 60 * 60 * 1000;

/** Returns the options with which a request at this monotonic time uses the previous listing. */
export function revalidationOf(
  memory: ListingMemory | undefined,
  now: number,
): Pick<ListOptions, 'previous' | 'etag' | 'allowDifference'> {
  if (memory === undefined) {
    return { previous: undefined, etag: undefined, allowDifference: false };
  }
  const { etag, table, isStored, fullAt, isFull } = memory;
  const mayUseEtag = isFull || now - fullAt <= MAX_TRUST_MS;
  return { previous: table, etag: mayUseEtag ? etag : undefined, allowDifference: isStored };
}

/**
 * Returns the memory of a listing, to be kept once its changes are committed: a body whose changes were not stored must not
 * count as known. Undefined for an unchanged listing of which nothing is remembered.
 * @param missing ids of the records that are missing by then
 * @param now monotonic time
 */
export function memoryOf(
  answer: ListingAnswer,
  before: ListingMemory | undefined,
  missing: readonly string[],
  now: number,
): ListingMemory | undefined {
  const full = { missing, fullAt: now, isFull: true };
  if (!answer.unchanged) {
    const { etag, table, size, listing } = answer;
    const { complete, anomalies } = listing;
    return { etag, table, complete, anomalies, size, isStored: true, ...full };
  }
  if (before === undefined) return undefined;
  if (!answer.full) return { ...before, missing, isFull: false };
  return { ...before, etag: answer.etag, ...full };
}

export function distrustEtag(listings: Map<Kind, ListingMemory>, kind: Kind): void {
  const listing = listings.get(kind);
  if (listing !== undefined) listings.set(kind, { ...listing, etag: undefined });
}

export function markNotStored(listings: Map<Kind, ListingMemory>): void {
  for (const [kind, listing] of listings) listings.set(kind, { ...listing, isStored: false });
}

export const NEVER_POLLED: PollHealth = {
  up: false,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: undefined,
  lastSuccessAt: undefined,
};

/** Longest time between two successful polls without a missing one, in intervals of the schedule: one may fail, not two. */
const STEADY_INTERVALS = 2.5;

/**
 * Returns the poll health after a successful poll.
 * @param at epoch ms
 * @param maxIntervalMs the longest interval of the project's schedule
 */
export function afterSuccess(before: PollHealth, at: number, maxIntervalMs: number): PollHealth {
  // A clock that was set back leaves times in the future: then nothing would count until they have passed.
  const gapMs = at - (before.lastSuccessAt ?? -Infinity);
  const isSteady = gapMs >= 0 && gapMs <= STEADY_INTERVALS * maxIntervalMs;
  return {
    up: true,
    consecutiveFailures: 0,
    reason: undefined,
    lastPollAt: at,
    lastSuccessAt: at,
    steadySince: isSteady ? before.steadySince : at,
  };
}

/** Returns the poll health after a poll that failed at this time, epoch ms. */
export function afterFailure(before: PollHealth, at: number, failure: PollFailure): PollHealth {
  const { url, statusCode, location, detail } = failure.details;
  return {
    up: false,
    consecutiveFailures: before.consecutiveFailures + 1,
    reason: failure.reason,
    failure: { message: failure.message, url, statusCode, location, detail },
    lastPollAt: at,
    lastSuccessAt: before.lastSuccessAt,
    steadySince: before.steadySince,
  };
}

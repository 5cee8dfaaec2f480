import type { AnomalySummary } from '../domain/record.ts';
import type { Kind } from '../domain/status.ts';
import type { Clock } from './ports/clock.ts';
import type { ListingAnswer, ListingBasis, ListOptions } from './ports/service.ts';

/** Age of the last full answer up to which several 304 in a row are accepted (docs/specification.md#unchanged-listings). */
const MAX_TRUST_MS = 60 * 60 * 1000;

/** Summary of the last committed listing of one kind, kept to recognise it when it comes again. */
export interface ListingMemory {
  readonly basis: ListingBasis;
  /** False after an `invalid_response`, until the next full answer. */
  readonly isEtagTrusted: boolean;
  /** False after a failed commit, until the next changed listing: the store may differ from this one. */
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

/** What is kept of the listings of one project. */
export type ListingMemories = Map<Kind, ListingMemory>;

/** Returns the options with which the next request uses the previous listing. */
export function revalidationOf(
  memory: ListingMemory | undefined,
  clock: Pick<Clock, 'monotonic'>,
): Pick<ListOptions, 'previous' | 'revalidate' | 'allowDifference'> {
  if (memory === undefined) {
    return { previous: undefined, revalidate: 'bytes', allowDifference: false };
  }
  const { basis, isEtagTrusted, isStored, fullAt, isFull } = memory;
  const mayUseEtag = isEtagTrusted && (isFull || clock.monotonic() - fullAt <= MAX_TRUST_MS);
  return {
    previous: basis,
    revalidate: mayUseEtag ? 'etag' : 'bytes',
    allowDifference: isStored,
  };
}

/** Everything of an answer but the records. */
export type AnswerSummary =
  | Extract<ListingAnswer, { unchanged: true }>
  | ({ readonly unchanged: false } & Pick<
      ListingMemory,
      'basis' | 'complete' | 'anomalies' | 'size'
    >);

export interface RememberedAnswer {
  readonly summary: AnswerSummary;
  /** Ids of the records that are missing once the changes are stored. */
  readonly missing: readonly string[];
}

export function summaryOf(answer: ListingAnswer): AnswerSummary {
  if (answer.unchanged) return answer;
  const { listing, size, basis } = answer;
  const { complete, anomalies } = listing;
  return { unchanged: false, basis, complete, anomalies, size };
}

/** Returns the memory after the commit of `answer`; `missing` are the ids of the records that are missing by then. */
function afterAnswer(
  memory: ListingMemory | undefined,
  answer: AnswerSummary,
  missing: readonly string[],
  clock: Clock,
): ListingMemory | undefined {
  const full = { isEtagTrusted: true, missing, fullAt: clock.monotonic(), isFull: true };
  if (!answer.unchanged) {
    const { basis, complete, anomalies, size } = answer;
    return { basis, complete, anomalies, size, isStored: true, ...full };
  }
  if (memory === undefined) return undefined;
  if (!answer.full) return { ...memory, missing, isFull: false };
  return { ...memory, basis: answer.basis, ...full };
}

/** Keeps the answers of a poll. Called only after the commit: a body whose changes were not stored must not count as known. */
export function updateMemory(
  memory: ListingMemories,
  answers: ReadonlyMap<Kind, RememberedAnswer>,
  clock: Clock,
): void {
  for (const [kind, { summary, missing }] of answers) {
    const listing = afterAnswer(memory.get(kind), summary, missing, clock);
    if (listing !== undefined) memory.set(kind, listing);
  }
}

export function distrustEtag(memory: ListingMemories, kind: Kind): void {
  const listing = memory.get(kind);
  if (listing !== undefined) memory.set(kind, { ...listing, isEtagTrusted: false });
}

export function markNotStored(memory: ListingMemories): void {
  for (const [kind, listing] of memory) memory.set(kind, { ...listing, isStored: false });
}

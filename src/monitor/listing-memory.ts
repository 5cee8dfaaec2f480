import type { AnomalySummary } from '../domain/record.ts';
import type { Clock } from './ports/clock.ts';
import type { ListingAnswer, Validator } from './ports/service.ts';

/** A 304 is not trusted for longer than this without a full answer in between (docs/specification.md#unchanged-listings). */
const LONGEST_TRUST_MS = 60 * 60 * 1000;

/** What is remembered of the last committed listing of one kind, to recognise it when it comes again. */
export interface ListingMemory {
  readonly validator: Validator;
  readonly complete: boolean;
  readonly anomalies: readonly AnomalySummary[];
  /** Records in it. */
  readonly size: number;
  /** Ids of records that it lacked and that are not gone. */
  readonly missing: readonly string[];
  /** Monotonic time of the last full answer. */
  readonly fullAt: number;
}

/** Whether a 304 would do, when the project's next poll comes at `nextAt` (epoch ms). */
export function mayRevalidate(
  memory: ListingMemory,
  nextAt: number | undefined,
  clock: Clock,
): boolean {
  if (nextAt === undefined) return false;
  return clock.monotonic() + (nextAt - clock.now()) - memory.fullAt <= LONGEST_TRUST_MS;
}

/** After an answer that made no sense, the next one has to be whole. */
export function withoutEtag(memory: ListingMemory): ListingMemory {
  return { ...memory, validator: { ...memory.validator, etag: undefined } };
}

/** After a commit that failed nobody knows whether the store is as this listing says: the next one is read whole. */
export function withoutItems(memory: ListingMemory): ListingMemory {
  return { ...memory, validator: { ...memory.validator, items: undefined } };
}

/** What is remembered of an answer: all of it but the records. */
export type AnswerSummary =
  | Extract<ListingAnswer, { unchanged: true }>
  | ({ readonly unchanged: false } & Pick<
      ListingMemory,
      'validator' | 'complete' | 'anomalies' | 'size'
    >);

export function summaryOf(answer: ListingAnswer): AnswerSummary {
  if (answer.unchanged) return answer;
  const { listing, vanished, validator } = answer;
  const { complete, anomalies, records } = listing;
  const size = vanished === undefined ? records.size : (validator.items?.idEnds.length ?? 0);
  return { unchanged: false, validator, complete, anomalies, size };
}

/** The memory after `answer` was committed, when these records were missing. */
export function afterAnswer(
  memory: ListingMemory | undefined,
  answer: AnswerSummary,
  missing: readonly string[],
  clock: Clock,
): ListingMemory | undefined {
  if (!answer.unchanged) {
    const { validator, complete, anomalies, size } = answer;
    return { validator, complete, anomalies, size, missing, fullAt: clock.monotonic() };
  }
  if (memory === undefined || !answer.full) return memory && { ...memory, missing };
  return { ...memory, validator: answer.validator, missing, fullAt: clock.monotonic() };
}

import { visible } from './visible.ts';

/** The service's explanation of a failure, scrubbed of keys and cut; either text may be absent. */
export interface ErrorInfo {
  readonly error_id: string | null;
  readonly error_msg: string | null;
}

/** An error_info as it was fetched; `errorMsgTruncated` if its message was cut. */
export interface FetchedErrorInfo {
  readonly errorInfo: ErrorInfo;
  readonly errorMsgTruncated: boolean;
  /** Set if it is not as documented, and a part of it therefore kept as JSON. Not stored. */
  readonly isUnusual?: boolean;
}

/** Why a failure's line has no error_info (docs/specification.md#settling). */
export const NO_ERROR_INFO_REASONS = [
  'invalid_id',
  'not_found',
  'validation',
  'client_error',
  'redirect',
  'too_large',
  'invalid_response',
  'no_error_info',
  'project_removed',
  'unavailable',
] as const;
export type NoErrorInfoReason = (typeof NO_ERROR_INFO_REASONS)[number];

/** Reasons of failures without error_info, worded to follow "because". */
export const NO_ERROR_INFO_WORDS: Readonly<Record<NoErrorInfoReason, string>> = {
  invalid_id: 'the id of the prompt cannot be used in a request',
  not_found: 'the service no longer has the prompt (404)',
  validation: 'the service rejects the request as invalid (422)',
  client_error: 'the service refuses the request (4xx)',
  redirect: 'the service redirects to another address',
  too_large: 'the answer of the service is too large',
  invalid_response: 'the service sent an invalid answer',
  no_error_info: 'the service has none',
  project_removed: 'the project was removed from the configuration',
  unavailable: 'the service was unavailable for a day',
};

/** Final outcome of a failure: its error_info, or the reason why there is none. */
export type Settlement =
  | (FetchedErrorInfo & { readonly reason?: never })
  | { readonly reason: NoErrorInfoReason; readonly errorInfo?: never };

/** A settlement with the id of its cause (`causeOf`). */
export type Settled = Settlement & { readonly cause: string };

/** Attempts so far to fetch the error_info of a pending failure. Times are epoch ms. */
export interface Tries {
  readonly count: number;
  /** Number of attempts that the service answered without a usable error_info. */
  readonly useless: number;
  readonly firstAt: number | undefined;
  readonly lastAt: number | undefined;
  /** Time of the next attempt; 0 before the first one, so that no clock change delays it. */
  readonly nextAt: number;
}

/** What follows from an attempt: the end of the failure, or the attempts so far with the time of the next one. */
export type TryOutcome = { readonly settlement: Settlement } | { readonly tries: Tries };

/** Outcome of an attempt without an error_info. */
export type FailedTry =
  | {
      /** The service answered, but not with a usable error_info. */
      readonly useless: true;
      readonly reason: NoErrorInfoReason;
    }
  | {
      /** The service is down, refuses the key or asks to wait: later attempts may succeed. */
      readonly useless: false;
      /** Wait that the service asked for, ms. */
      readonly retryAfterMs: number | undefined;
    };

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MAX_USELESS_TRIES = 3;
const USELESS_PERIOD_MS = 5 * MINUTE_MS;
const REMOVED_PERIOD_MS = 5 * MINUTE_MS;
const MAX_PENDING_MS = 24 * 60 * MINUTE_MS;
const FIRST_DELAY_MS = 15 * SECOND_MS;
const MAX_DELAY_MS = 15 * MINUTE_MS;

/** Decides what becomes of a failure whose project was removed from the configuration: it may be added again soon. */
export function afterRemoval(tries: Tries, removedAt: number, now: number): TryOutcome {
  return now - removedAt >= REMOVED_PERIOD_MS
    ? { settlement: { reason: 'project_removed' } }
    : { tries: { ...tries, lastAt: now, nextAt: now + FIRST_DELAY_MS } };
}

/**
 * Decides what follows a failed attempt: the settlement, or the attempts so far with the time of the next one
 * (docs/specification.md#settling). If the clock was set back and the first attempt lies in the future, the period
 * starts again now.
 */
export function afterFailedTry(before: Tries, failed: FailedTry, now: number): TryOutcome {
  const count = before.count + 1;
  const useless = before.useless + (failed.useless ? 1 : 0);
  const firstAt = Math.min(before.firstAt ?? now, now);
  const elapsed = now - firstAt;
  if (failed.useless && useless >= MAX_USELESS_TRIES && elapsed >= USELESS_PERIOD_MS) {
    return { settlement: { reason: failed.reason } };
  }
  if (elapsed >= MAX_PENDING_MS) return { settlement: { reason: 'unavailable' } };
  const delay = nextDelay(failed, count, useless, elapsed);
  return { tries: { count, useless, firstAt, lastAt: now, nextAt: now + delay } };
}

function nextDelay(failed: FailedTry, count: number, useless: number, elapsed: number): number {
  const growing = Math.min(FIRST_DELAY_MS * 2 ** (count - 1), MAX_DELAY_MS);
  if (!failed.useless) return Math.max(growing, failed.retryAfterMs ?? 0);
  // The last of the useless attempts is due at the end of the period.
  return useless >= MAX_USELESS_TRIES - 1
    ? Math.max(USELESS_PERIOD_MS - elapsed, SECOND_MS)
    : growing;
}

/** Maximum number of error_ids of a project that are counted by themselves: the first ones seen. */
export const MAX_ERROR_LABELS = 20;
const MAX_LABEL_LENGTH = 128;

/** Labels that are no error_id of the service: failures without one, and those of further error_ids. */
export const SPECIAL_ERROR_LABELS = ['none', 'other'] as const;

/** Failures of a project that have been reported with one error_id. */
export interface ErrorTotal {
  /** The error_id as a label, or one of {@link SPECIAL_ERROR_LABELS}. */
  readonly label: string;
  readonly count: number;
  /** When the first of them was settled, epoch ms. */
  readonly firstSeenAt: number;
}

/**
 * Returns the label under which a failure is counted: its error_id on one line, without characters that a terminal or a page
 * could act on, cut to 128 characters (docs/specification.md#error-ids).
 */
export function errorLabel(errorInfo: ErrorInfo | undefined): string {
  const text = visible(errorInfo?.error_id ?? '');
  return text === '' ? 'none' : Array.from(text).slice(0, MAX_LABEL_LENGTH).join('');
}

/** Whether an error label stands for an error_id of the service. */
export function isErrorId(label: string): boolean {
  return SPECIAL_ERROR_LABELS.every((special) => special !== label);
}

import pRetry from 'p-retry';
import { ApiError, type ApiFailureReason } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Shutdown } from '../monitor/ports/service.ts';

/** The pause between two attempts: backoff, or `Retry-After` if that is longer. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 10_000;
/** A longer `Retry-After` ends the poll (docs/specification.md#retry-after). */
const MAX_WAIT_IN_POLL_MS = 10_000;
/** A longer `Retry-After` counts as this. */
const MAX_WAIT_MS = 5 * 60 * 1000;

/** An HTTP date; `Date.parse` also accepts texts without a zone. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, .+ GMT$/;

const RETRIED_REASONS: ReadonlySet<ApiFailureReason> = new Set([
  'network',
  'timeout',
  'rate_limited',
  'server_error',
]);

interface RetryPolicy {
  /** Number of attempts after the first. */
  readonly retries: number;
  readonly signal: Pick<Shutdown, 'waits'>;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Returns a random number from 0 up to, not including, 1. */
  readonly random: () => number;
  /** Called when the wait for the next attempt begins. */
  readonly onWait: (error: ApiError, attempt: number, delayMs: number) => void;
}

/**
 * Repeats `attempt` until it succeeds, fails with an error that is not retried, or has no retries left. `number` counts
 * from 1. Rejects with the signal's reason when it aborts a wait.
 * @throws {ApiError} the error of the last attempt
 */
export async function withRetries<T>(
  attempt: (number: number) => Promise<T>,
  { retries, signal, clock, random, onWait }: RetryPolicy,
): Promise<T> {
  return await pRetry(attempt, {
    retries,
    // onFailedAttempt does the waiting: p-retry supports neither Retry-After nor jitter below its minimum.
    minTimeout: 0,
    onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
      if (!(error instanceof ApiError)) throw error;
      if (retriesLeft === 0 || !shouldRetry(error)) throw error;
      signal.waits.throwIfAborted();
      const delayMs = delayBefore(error, attemptNumber, random());
      onWait(error, attemptNumber, delayMs);
      await clock.sleep(delayMs, signal.waits);
    },
  });
}

/** Returns whether a request that failed with this error is sent again (docs/specification.md#retries). */
function shouldRetry({ reason, details }: ApiError): boolean {
  if ((details.retryAfterMs ?? 0) > MAX_WAIT_IN_POLL_MS) return false;
  return RETRIED_REASONS.has(reason) || details.statusCode === 408;
}

/**
 * Returns the wait after a failed attempt, ms: half of the backoff plus a random part of the other half, at least the
 * `Retry-After`.
 * @param attempt number of the failed attempt, from 1
 * @param chance random number from 0 to 1
 */
export function delayBefore(error: ApiError, attempt: number, chance: number): number {
  const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  return Math.max(Math.round((backoff * (1 + chance)) / 2), error.details.retryAfterMs ?? 0);
}

/**
 * Returns the wait that a `Retry-After` header asks for, ms, at most `maxMs` (docs/specification.md#retry-after);
 * undefined if the header is invalid.
 * @param now epoch ms
 */
export function parseRetryAfter(
  header: string | readonly string[] | undefined,
  now: number,
  maxMs = MAX_WAIT_MS,
): number | undefined {
  const text = (typeof header === 'string' ? header : header?.[0])?.trim();
  if (text === undefined) return undefined;
  const isDate = HTTP_DATE.test(text);
  if (!isDate && !/^\d+(?:\.\d+)?$/.test(text)) return undefined;
  const wait = isDate ? Date.parse(text) - now : Math.ceil(Number(text)) * 1000;
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), maxMs);
}

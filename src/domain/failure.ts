/** What the service tells of a failure; either text may be lacking. Scrubbed and cut already. */
export interface ErrorInfo {
  readonly error_id: string | null;
  readonly error_msg: string | null;
}

/** An error_info as it was fetched; `errorMsgTruncated` if its message was cut. */
export interface FetchedErrorInfo {
  readonly errorInfo: ErrorInfo;
  readonly errorMsgTruncated: boolean;
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

/** How a failure ends: with its error_info, or with the reason why there is none. */
export type Settlement =
  | (FetchedErrorInfo & { readonly reason?: never })
  | { readonly reason: NoErrorInfoReason; readonly errorInfo?: never };

/** What has been tried for a pending failure so far. Times are epoch ms. */
export interface Tries {
  readonly count: number;
  /** Answers that were no use. */
  readonly useless: number;
  readonly firstAt: number | undefined;
  readonly lastAt: number | undefined;
  /** When to try (again); 0 before the first try, so that no clock can delay that. */
  readonly nextAt: number;
}

/** What one try brought, when it was not an error_info. */
export type FailedTry =
  | {
      /** The service answered, and the answer is no use. */
      readonly useless: true;
      readonly reason: NoErrorInfoReason;
    }
  | {
      /** The service is down, refuses the key or asks to wait. */
      readonly useless: false;
      /** It asked to wait so long, ms. */
      readonly retryAfterMs: number | undefined;
    };

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const USELESS_TRIES = 3;
const USELESS_PERIOD = 5 * MINUTE;
const PATIENCE = 24 * 60 * MINUTE;
const FIRST_DELAY = 15 * SECOND;
const MAX_DELAY = 15 * MINUTE;

/** Whether a project that left the configuration has been out of it for long enough to give its failures up. */
export function isRemovedForGood(removedAt: number, now: number): boolean {
  return now - removedAt >= USELESS_PERIOD;
}

/** When a failure of a project that is out of the configuration is looked at again, epoch ms. */
export function nextCheckAt(now: number): number {
  return now + FIRST_DELAY;
}

/**
 * Decides what follows from a try that brought no error_info: the settlement, or the tries so far with the time of the next
 * (docs/specification.md#settling). A first try that lies in the future, because the clock was set back, counts as now.
 */
export function afterFailedTry(
  before: Tries,
  failed: FailedTry,
  now: number,
): { readonly settlement: Settlement } | { readonly tries: Tries } {
  const count = before.count + 1;
  const useless = before.useless + (failed.useless ? 1 : 0);
  const firstAt = Math.min(before.firstAt ?? now, now);
  const elapsed = now - firstAt;
  if (failed.useless && useless >= USELESS_TRIES && elapsed >= USELESS_PERIOD) {
    return { settlement: { reason: failed.reason } };
  }
  if (elapsed >= PATIENCE) return { settlement: { reason: 'unavailable' } };
  const delay = nextDelay(failed, count, useless, elapsed);
  return { tries: { count, useless, firstAt, lastAt: now, nextAt: now + delay } };
}

function nextDelay(failed: FailedTry, count: number, useless: number, elapsed: number): number {
  const growing = Math.min(FIRST_DELAY * 2 ** (count - 1), MAX_DELAY);
  if (!failed.useless) return Math.max(growing, failed.retryAfterMs ?? 0);
  // The last useless try falls due when the period is over, neither sooner nor much later.
  return useless >= USELESS_TRIES - 1 ? Math.max(USELESS_PERIOD - elapsed, SECOND) : growing;
}

import { ApiError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';

/** Waits that the service asked for, by the key of the request (docs/specification.md#retry-after). A restart drops them. */
export interface RetryHolds {
  /** @throws {ApiError} with the reason of the answer that asked for the wait, until the wait is over */
  throwIfHeld(key: string): void;
  /** Holds the key if the answer has a `Retry-After`. */
  holdAfter(key: string, error: ApiError): void;
}

export function createRetryHolds(clock: Pick<Clock, 'monotonic'>): RetryHolds {
  const holds = new Map<string, { readonly until: number; readonly error: ApiError }>();

  function throwIfHeld(key: string): void {
    const hold = holds.get(key);
    if (hold === undefined) return;
    const leftMs = hold.until - clock.monotonic();
    // A timer can end up to a millisecond early.
    if (leftMs < 1) return;
    const { reason, details } = hold.error;
    throw new ApiError(reason, 'the service asked to wait; no request is sent until then', {
      statusCode: details.statusCode,
      detail: details.detail,
      retryAfterMs: Math.ceil(leftMs),
    });
  }

  function holdAfter(key: string, error: ApiError): void {
    const now = clock.monotonic();
    for (const [held, { until }] of holds) if (until <= now) holds.delete(held);
    const until = now + (error.details.retryAfterMs ?? 0);
    if (until > (holds.get(key)?.until ?? now)) holds.set(key, { until, error });
  }

  return { throwIfHeld, holdAfter };
}

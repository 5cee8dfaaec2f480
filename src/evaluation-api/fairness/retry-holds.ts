import type { Kind } from '../../domain/status.ts';
import { ApiError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';

/** Waits that the service asked for, by listing (docs/specification.md#retry-after). A restart drops them. */
export interface RetryHolds {
  /** @throws {ApiError} with the reason of the held listing, until its wait is over */
  throwIfHeld(project: string, kind: Kind): void;
  /** Holds a listing whose final error has a `Retry-After`. */
  holdAfter(project: string, kind: Kind, error: ApiError): void;
}

export function createRetryHolds(clock: Pick<Clock, 'monotonic'>): RetryHolds {
  const holds = new Map<string, { readonly until: number; readonly error: ApiError }>();

  function throwIfHeld(project: string, kind: Kind): void {
    const hold = holds.get(`${kind} ${project}`);
    if (hold === undefined) return;
    const retryAfterMs = hold.until - clock.monotonic();
    if (retryAfterMs <= 0) return;
    const { reason, details } = hold.error;
    throw new ApiError(reason, 'the service asked to wait; no request is sent until then', {
      ...details,
      retryAfterMs,
    });
  }

  function holdAfter(project: string, kind: Kind, error: ApiError): void {
    const now = clock.monotonic();
    for (const [listing, { until }] of holds) if (until <= now) holds.delete(listing);
    const { retryAfterMs } = error.details;
    if (retryAfterMs === undefined) return;
    holds.set(`${kind} ${project}`, { until: now + retryAfterMs, error });
  }

  return { throwIfHeld, holdAfter };
}

import type { PollFailure } from './events.ts';
import type { PollHealth } from './ports/store.ts';

export const NEVER_POLLED: PollHealth = {
  up: false,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: undefined,
  lastSuccessAt: undefined,
};

/** Longest time between two successful polls without a missing one, in intervals of the schedule: one may fail, not two. */
const STEADY_INTERVALS = 2.5;

/** A poll that ended, for the health after it. */
export interface EndedPoll {
  /** Undefined if it succeeded. */
  readonly failure: PollFailure | undefined;
  /** Epoch ms. */
  readonly at: number;
  /** Longest interval of the project's schedule, ms. */
  readonly maxIntervalMs: number;
}

/** Returns the poll health after a poll. */
export function afterPoll(
  before: PollHealth,
  { failure, at, maxIntervalMs }: EndedPoll,
): PollHealth {
  const { lastSuccessAt, steadySince } = before;
  if (failure === undefined) {
    // A clock that was set back leaves times in the future: then nothing would count until they have passed.
    const gapMs = at - (lastSuccessAt ?? -Infinity);
    const isSteady = gapMs >= 0 && gapMs <= STEADY_INTERVALS * maxIntervalMs;
    return {
      up: true,
      consecutiveFailures: 0,
      reason: undefined,
      lastPollAt: at,
      lastSuccessAt: at,
      steadySince: isSteady ? steadySince : at,
    };
  }
  const { url, statusCode, location, detail } = failure.details;
  return {
    up: false,
    consecutiveFailures: before.consecutiveFailures + 1,
    reason: failure.reason,
    failure: { message: failure.message, url, statusCode, location, detail },
    lastPollAt: at,
    lastSuccessAt,
    steadySince,
  };
}

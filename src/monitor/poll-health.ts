import type { PollFailure } from './events.ts';
import type { PollHealth } from './ports/store.ts';

export const NEVER_POLLED: PollHealth = {
  up: false,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: undefined,
  lastSuccessAt: undefined,
};

/** Returns the poll health after a poll that failed with `failure` or, without it, succeeded. `at` is epoch ms. */
export function afterPoll(
  before: PollHealth,
  failure: Pick<PollFailure, 'reason' | 'details'> | undefined,
  at: number,
): PollHealth {
  return failure === undefined
    ? { up: true, consecutiveFailures: 0, reason: undefined, lastPollAt: at, lastSuccessAt: at }
    : {
        up: false,
        consecutiveFailures: before.consecutiveFailures + 1,
        reason: failure.reason,
        keyWasRefused:
          failure.reason === 'auth' ? failure.details.statusCode !== undefined : undefined,
        lastPollAt: at,
        lastSuccessAt: before.lastSuccessAt,
      };
}

import type { PollFailureReason } from './errors.ts';
import type { PollHealth } from './ports.ts';

export const NEVER_POLLED: PollHealth = {
  up: false,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: undefined,
  lastSuccessAt: undefined,
};

/** How a project's polls go after one more, which failed for `reason` or succeeded. `at` is epoch ms. */
export function afterPoll(
  before: PollHealth,
  reason: PollFailureReason | undefined,
  at: number,
): PollHealth {
  return reason === undefined
    ? { up: true, consecutiveFailures: 0, reason, lastPollAt: at, lastSuccessAt: at }
    : {
        up: false,
        consecutiveFailures: before.consecutiveFailures + 1,
        reason,
        lastPollAt: at,
        lastSuccessAt: before.lastSuccessAt,
      };
}

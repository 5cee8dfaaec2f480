import type { Clock } from '../../monitor/ports/clock.ts';
import type { Departure, RateLimit } from '../../monitor/ports/rate-limit.ts';

/** The service counts when requests arrive, which is not quite as regular as they are sent. */
const MARGIN_MS = 20;

/**
 * Counts requests by when they really go out, which a handshake can delay: at most one second's worth, but at least one,
 * in any second, and never more on average (docs/specification.md#rate-limit). 0 is no limit.
 */
export function createRateLimit(perSecond: number, clock: Pick<Clock, 'monotonic'>): RateLimit {
  if (perSecond === 0) return { delay: () => 0, take: () => ({ sent() {}, cancelled() {} }) };
  const most = Math.max(1, Math.floor(perSecond));
  const windowMs = Math.max(1000, 1000 / perSecond) + MARGIN_MS;
  /** When requests went out within the window, the oldest first. */
  const sentAt: number[] = [];
  let due = 0;

  function delay(): number {
    const now = clock.monotonic();
    while (sentAt[0] !== undefined && sentAt[0] + windowMs <= now) sentAt.shift();
    if (sentAt.length + due < most) return 0;
    return sentAt[0] === undefined ? Number.POSITIVE_INFINITY : sentAt[0] + windowMs - now;
  }

  function take(): Departure {
    due += 1;
    let isDue = true;
    const leave = (note: () => void) => () => {
      if (!isDue) return;
      isDue = false;
      due -= 1;
      note();
    };
    return { sent: leave(() => sentAt.push(clock.monotonic())), cancelled: leave(() => {}) };
  }

  return { delay, take };
}

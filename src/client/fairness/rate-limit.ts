import type { Clock } from '../../monitor/ports/clock.ts';
import type { SendPermit, RateLimit } from '../../monitor/ports/rate-limit.ts';

/** Tolerance, as requests arrive at the service less regularly than they are sent. */
const MARGIN_MS = 20;

/**
 * Creates a rate limit: at most `perSecond` requests in any second, rounded down; below 1, one request in any
 * 1/`perSecond` seconds (docs/specification.md#rate-limit). Counts a request when it is sent, which a handshake can delay.
 * 0 means no limit.
 */
export function createRateLimit(perSecond: number, clock: Pick<Clock, 'monotonic'>): RateLimit {
  if (perSecond === 0) return { delay: () => 0, take: () => ({ sent() {}, cancelled() {} }) };
  const maxInWindow = Math.max(1, Math.floor(perSecond));
  const windowMs = Math.max(1000, 1000 / perSecond) + MARGIN_MS;
  /** Times of the requests sent within the window, oldest first. */
  const sentAt: number[] = [];
  let reserved = 0;

  function delay(): number {
    const now = clock.monotonic();
    while (sentAt[0] !== undefined && sentAt[0] + windowMs <= now) sentAt.shift();
    if (sentAt.length + reserved < maxInWindow) return 0;
    return sentAt[0] === undefined ? Number.POSITIVE_INFINITY : sentAt[0] + windowMs - now;
  }

  function take(): SendPermit {
    reserved += 1;
    let isReserved = true;
    const once = (act: () => void) => () => {
      if (!isReserved) return;
      isReserved = false;
      reserved -= 1;
      act();
    };
    return { sent: once(() => sentAt.push(clock.monotonic())), cancelled: once(() => {}) };
  }

  return { delay, take };
}

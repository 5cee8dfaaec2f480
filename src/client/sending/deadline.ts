import type { Clock, Timer } from '../../monitor/ports/clock.ts';

/** A time limit for an exchange with the service, in which time that evalwatch itself takes does not count. */
export interface Deadline {
  /** Stops the time until the promise, which never rejects, resolves. Returns the promise. */
  without(held: Promise<void>): Promise<void>;
  /** Returns the counted time so far, ms. */
  countedMs(): number;
  clear(): void;
}

/** Creates a deadline that calls `onExpired` after `ms` of counted time. */
export function createDeadline(
  ms: number,
  clock: Pick<Clock, 'monotonic' | 'timeout'>,
  onExpired: () => void,
): Deadline {
  let left = ms;
  let startedAt = clock.monotonic();
  let timer: Timer = clock.timeout(left, onExpired);
  let holds = 0;
  let isOver = false;

  async function hold(held: Promise<void>): Promise<void> {
    if (holds === 0) {
      timer.cancel();
      left -= clock.monotonic() - startedAt;
    }
    holds += 1;
    await held;
    holds -= 1;
    if (holds > 0 || isOver) return;
    startedAt = clock.monotonic();
    timer = clock.timeout(Math.max(0, left), onExpired);
  }

  return {
    without: hold,
    countedMs: () => ms - left + (holds === 0 ? clock.monotonic() - startedAt : 0),
    clear: () => {
      isOver = true;
      timer.cancel();
    },
  };
}

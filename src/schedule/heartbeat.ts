import type { Clock, Timer } from '../monitor/ports/clock.ts';

const SECOND = 1000;
/** Time by which a timer may fire before the wall clock has reached its second, ms. */
const TIMER_TOLERANCE_MS = 20;

/**
 * Calls `beat` at the start of every second of wall time, and within a second of real time after the clock was set,
 * either way, or the machine slept. Returns the function that stops it.
 */
export function startHeartbeat(clock: Clock, beat: () => void): () => void {
  let dueAt: number;
  let timer: Timer;

  function wait(now: number): void {
    dueAt = (Math.floor(now / SECOND) + 1) * SECOND;
    timer = clock.timeout(dueAt - now, wake);
  }

  function wake(): void {
    const now = clock.now();
    const earlyBy = dueAt - now;
    wait(now);
    // Earlier than that, the clock was set back meanwhile.
    if (earlyBy <= 0 || earlyBy > TIMER_TOLERANCE_MS) beat();
  }

  wait(clock.now());
  return () => timer.cancel();
}

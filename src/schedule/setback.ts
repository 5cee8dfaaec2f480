import type { Clock } from '../monitor/ports/clock.ts';

/** Drift of the wall clock between two beats that does not count as a setback, ms. */
const MAX_DRIFT_MS = 20;

/** The wall clock was set back since the last beat. */
export interface Setback {
  readonly byMs: number;
  /**
   * Converts the moment of the last beat, or the monotonic time `at` if that is later, to wall time of the clock after it
   * was set back.
   */
  reached(at: number | undefined): number;
}

/** Returns a function to call at each beat with the wall time: it detects that the wall clock was set back since the last one. */
export function watchForSetbacks(
  clock: Pick<Clock, 'monotonic'>,
): (now: number) => Setback | undefined {
  let last = { wall: -Infinity, at: 0 };
  return (now) => {
    const at = clock.monotonic();
    // The wall time at a moment of the monotonic clock, had the wall clock always been as it is now.
    const wallAt = (moment: number) => now - (at - moment);
    const before = last;
    last = { wall: now, at };
    const byMs = before.wall - wallAt(before.at);
    if (byMs <= MAX_DRIFT_MS) return undefined;
    return { byMs, reached: (moment = 0) => wallAt(Math.max(before.at, moment)) };
  };
}

import type { Clock } from '../monitor/ports/clock.ts';

const SECOND = 1000;

/**
 * Calls `beat` at the start of every second of wall time, and within a second of real time after the clock was set,
 * either way, or the machine slept. Returns the function that stops it.
 */
export function startHeartbeat(clock: Clock, beat: () => void): () => void {
  let lastSecond = Math.floor(clock.now() / SECOND);
  let timer = setTimeout(wake, timeToNextSecond(clock.now()));

  function wake(): void {
    const now = clock.now();
    timer = setTimeout(wake, timeToNextSecond(now));
    const second = Math.floor(now / SECOND);
    // A timer can fire a moment before the second that it waits for.
    if (second === lastSecond) return;
    lastSecond = second;
    beat();
  }

  return () => clearTimeout(timer);
}

function timeToNextSecond(now: number): number {
  return SECOND - (now % SECOND);
}

import { createTask, type ScheduledTask } from 'node-cron';
import type { Clock } from '../monitor/ports/clock.ts';

const SECOND = 1000;

/**
 * Calls `beat` at the start of every second of wall time, and within a second of real time after the clock was set,
 * either way, or the machine slept. Returns what ends it.
 */
export function startHeartbeat(clock: Clock, beat: () => void): () => void {
  let lastAt = clock.now();
  let task = taskAt(lastAt + SECOND);

  /**
   * A task for one second of one year. One for every second would, after eight hours of sleep, walk through each second
   * that it missed and block the loop for 2 s; for a year, half an hour.
   */
  function taskAt(ms: number): ScheduledTask {
    const at = new Date(ms);
    const time = [at.getUTCSeconds(), at.getUTCMinutes(), at.getUTCHours()];
    const expression = [...time, at.getUTCDate(), at.getUTCMonth() + 1, '*'].join(' ');
    const next = createTask(expression, renew, {
      timezone: 'Etc/UTC',
      missedExecutionTolerance: Infinity,
      suppressMissedWarning: true,
      logger: { info: ignore, warn: ignore, debug: ignore, error: ignore },
    });
    void next.start();
    return next;
  }

  function renew(): void {
    void task.destroy();
    lastAt = clock.now();
    task = taskAt(lastAt + SECOND);
    // node-cron would swallow what it throws.
    queueMicrotask(beat);
  }

  // node-cron sleeps through the time by which the clock is set back, and for a year if the second is over already
  // when its task starts.
  const guard = setInterval(() => {
    const elapsed = clock.now() - lastAt;
    if (elapsed < 0 || elapsed > 2 * SECOND) renew();
  }, SECOND);

  return () => {
    clearInterval(guard);
    void task.destroy();
  };
}

/** node-cron's own words go to the console otherwise; the scheduler counts what is missed. */
function ignore(): void {}

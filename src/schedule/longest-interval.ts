import type { Clock } from '../monitor/ports/clock.ts';
import { parseSchedule } from './calendar.ts';

/** A valid cron expression and time zone. */
interface ProjectTimes {
  readonly schedule: string;
  readonly timezone: string;
}

/**
 * Creates a function that returns the longest interval between two runs of a schedule, in ms. Each schedule is computed
 * once: thousands of projects may share one.
 */
export function createLongestInterval(clock: Pick<Clock, 'now'>): (times: ProjectTimes) => number {
  const known = new Map<string, number>();
  return ({ schedule, timezone }) => {
    const key = JSON.stringify([schedule, timezone]);
    const interval =
      known.get(key) ?? parseSchedule(schedule, timezone).maxIntervalSeconds(clock.now()) * 1000;
    known.set(key, interval);
    return interval;
  };
}

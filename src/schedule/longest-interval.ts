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
    // No name of a time zone has a space.
    const key = `${timezone} ${schedule}`;
    let interval = known.get(key);
    if (interval === undefined) {
      interval = parseSchedule(schedule, timezone).maxIntervalSeconds(clock.now()) * 1000;
      known.set(key, interval);
    }
    return interval;
  };
}

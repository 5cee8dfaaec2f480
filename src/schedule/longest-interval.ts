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
  /** By time zone and schedule. */
  const known = new Map<string, Map<string, number>>();
  return ({ schedule, timezone }) => {
    let ofZone = known.get(timezone);
    if (ofZone === undefined) known.set(timezone, (ofZone = new Map()));
    let interval = ofZone.get(schedule);
    if (interval === undefined) {
      interval = parseSchedule(schedule, timezone).maxIntervalSeconds(clock.now()) * 1000;
      ofZone.set(schedule, interval);
    }
    return interval;
  };
}

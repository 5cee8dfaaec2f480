import type { PlannedProject } from './plan.ts';
import { formatTime } from './output/text.ts';

const HOUR_MS = 60 * 60 * 1000;
const HOURS_PER_WEEK = 7 * 24;
/** Maximum number of (schedule, hour) pairs to count, about 1 s. With many schedules, fewer hours are counted, but at least 24. */
const MAX_COUNTS = 1_000_000;

/**
 * Warns when the listings alone need more requests per second than allowed, on average over the busiest clock hour of the
 * next week. A shorter peak only delays requests; an hour above the limit makes polls overlap.
 */
export function rateWarnings(
  planned: readonly PlannedProject[],
  maxPerSecond: number,
  now: number,
): readonly string[] {
  if (maxPerSecond === 0) return [];
  const busiest = busiestHour(planned, now);
  const perSecond = busiest.requests / (HOUR_MS / 1000);
  if (perSecond <= maxPerSecond) return [];
  return [
    `the schedules need ${roundUp(perSecond)} requests per second in the hour from ${formatTime(busiest.at)}, ` +
      `but max_requests_per_second allows ${maxPerSecond}: polls will start late or be skipped`,
  ];
}

function busiestHour(planned: readonly PlannedProject[], now: number) {
  const shared = Map.groupBy(planned, ({ schedule }) => schedule);
  const start = Math.floor(now / HOUR_MS) * HOUR_MS;
  let busiest = { at: start, requests: 0 };
  const hours = Math.min(HOURS_PER_WEEK, Math.max(24, Math.floor(MAX_COUNTS / shared.size)));
  for (let hour = 0; hour < hours; hour += 1) {
    const at = start + hour * HOUR_MS;
    let requests = 0;
    for (const [schedule, projects] of shared) {
      // A run at the first millisecond of the hour belongs to this hour; one at the first of the next hour does not.
      const runs = schedule.countBetween(at - 1, at + HOUR_MS - 1, HOUR_MS / 1000);
      for (const { project } of projects) requests += runs * (project.datasets ? 2 : 1);
    }
    if (requests > busiest.requests) busiest = { at, requests };
  }
  return busiest;
}

/** Rounds up to two decimals, so that a number above the limit never looks equal to it. */
function roundUp(value: number): number {
  return Math.ceil(Number((value * 100).toFixed(6))) / 100;
}

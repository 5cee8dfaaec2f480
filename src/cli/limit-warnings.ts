import { quoteId } from '../config/redaction.ts';
import { DEFAULT_LIMIT_MS } from '../domain/learned-limit.ts';
import { UNFINISHED_STATUSES } from '../domain/status.ts';
import { formatDuration } from './output/text.ts';
import type { PlannedProject } from './plan.ts';

/** Maximum number of projects that a warning names. */
const MAX_NAMED = 3;

/**
 * Warns of limits that are shorter than the longest interval of the schedule: a prompt that one poll finds waiting seems
 * stuck before the next poll. One warning for each status.
 */
export function limitWarnings(planned: readonly PlannedProject[], now: number): readonly string[] {
  const intervals = new Map<PlannedProject['schedule'], number>();
  const intervalOf = ({ schedule }: PlannedProject): number => {
    const intervalMs = intervals.get(schedule) ?? schedule.maxIntervalSeconds(now) * 1000;
    intervals.set(schedule, intervalMs);
    return intervalMs;
  };
  return UNFINISHED_STATUSES.flatMap((status) => {
    const tooShort = planned.flatMap((each) => {
      const configured = each.project.expect.limits[status];
      const limitMs = configured === 'auto' ? DEFAULT_LIMIT_MS[status] : configured;
      if (limitMs === 'off' || limitMs >= intervalOf(each)) return [];
      const interval = formatDuration(intervalOf(each));
      return [`${quoteId(each.project.id)} (${formatDuration(limitMs)}, polled every ${interval})`];
    });
    if (tooShort.length === 0) return [];
    const more = tooShort.length - MAX_NAMED;
    const names = tooShort.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
    return [
      `the limit for ${status} is shorter than the time between two polls: ${names}; ` +
        `prompts will seem stuck: set expect.max_${status.toLowerCase()} of the project to more, or to off`,
    ];
  });
}

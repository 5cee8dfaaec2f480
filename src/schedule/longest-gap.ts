import type { Days } from './days.ts';
import type { TimesOfDay } from './times-of-day.ts';
import type { Runs } from './runs.ts';
import type { Zone } from './zone.ts';

const SECOND = 1000;
const HOUR = 60 * 60 * SECOND;
const DAY = 24 * HOUR;

export interface ScheduleParts extends Runs {
  readonly days: Days;
  readonly times: TimesOfDay;
  readonly zone: Zone;
}

/**
 * Returns the longest gap between two runs, ms. Considers the gaps that begin in (from, until], or with the first run after
 * `from` if that run is after `until`. It compares days, not runs: gaps within a day are the same every day, except where local time jumps.
 */
export function longestGap(parts: ScheduleParts, from: number, until: number): number {
  return Math.max(
    parts.times.longestGap * SECOND,
    longestGapBetweenDays(parts, from, until),
    longestGapAtJumps(parts, from, until),
  );
}

function longestGapBetweenDays(
  { days, times, zone, nextAfter }: ScheduleParts,
  from: number,
  until: number,
): number {
  const beforeFirst = times.first * SECOND;
  const beforeLast = times.last * SECOND;
  if (days.every) return DAY + beforeFirst - beforeLast;
  const firstRun = nextAfter(from);
  // A local time that occurs twice, when clocks go back, runs once if it is the only one of its day.
  const occurrence = times.perDay === 1 ? 'first' : 'last';
  let longest = 0;
  let day: number | undefined = Math.floor((firstRun + zone.segmentAt(firstRun).offset) / DAY);
  let last = zone.toUtc(day * DAY + beforeLast, occurrence);
  do {
    day = days.next(day + 1);
    if (day === undefined) break;
    longest = Math.max(longest, zone.toUtc(day * DAY + beforeFirst, 'first') - last);
    last = zone.toUtc(day * DAY + beforeLast, occurrence);
  } while (last <= until);
  return longest;
}

/** Goes through each run around a jump of local time, from the last one before it until runs are regular again. */
function longestGapAtJumps(
  { days, times, zone, nextAfter, lastBetween }: ScheduleParts,
  from: number,
  until: number,
): number {
  let longest = 0;
  for (const { start, offset, before } of zone.jumps(from, until)) {
    const jump = Math.abs(offset - before);
    const settled = start + jump;
    const firstDay = Math.floor((start - 1 + before) / DAY);
    const lastDay = Math.floor((settled + offset) / DAY);
    const isAffected = !days.every || !times.everyHour || jump % HOUR > 0;
    if (!isAffected || (days.next(firstDay) ?? Infinity) > lastDay) continue;
    // Gaps of more than two days are found between days.
    let run = lastBetween(Math.max(from, start - 2 * DAY), start - 1);
    while (run !== undefined && run < settled) {
      const next = nextAfter(run);
      longest = Math.max(longest, next - run);
      run = next;
    }
  }
  return longest;
}

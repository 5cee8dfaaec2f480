import { readExpression } from './expression.ts';
import { longestGap } from './longest-gap.ts';
import type { Runs } from './runs.ts';
import { type Segment, zoneOf } from './zone.ts';

const SECOND = 1000;
const DAY = 24 * 60 * 60 * SECOND;
/** Includes two leap days, except around 2100. */
const HORIZON = 9 * 366 * DAY;

/** The runs of a cron expression in a time zone (docs/specification.md#schedules). Times are epoch ms. */
export interface Schedule extends Runs {
  /** Returns the number of runs in (after, until], at most `max`. */
  countBetween(after: number, until: number, max: number): number;
  /** Returns the longest gap that begins in the next 9 years, or with the next run if that is later (docs/metrics.md#schedule). */
  maxIntervalSeconds(now: number): number;
}

/** Returns the fault of a cron expression (docs/specification.md#cron-expressions) as `must …`; undefined if it is valid. */
export function validateSchedule(expression: string): string | undefined {
  return readExpression(expression).fault;
}

/** @throws {RangeError} if the expression has a fault or there is no such time zone */
export function parseSchedule(expression: string, timezone: string): Schedule {
  const read = readExpression(expression);
  if (read.fault !== undefined) throw new RangeError(`the schedule ${read.fault}`);
  const { days, times } = read;
  const zone = zoneOf(timezone);

  /** Returns the first matching local time from this one on, whole seconds in ms. */
  function localFrom(local: number): number {
    const today = Math.floor(local / DAY);
    let day = days.next(today);
    if (day === today) {
      const time = times.next((local - today * DAY) / SECOND);
      if (time !== undefined) return today * DAY + time * SECOND;
      day = days.next(today + 1);
    }
    if (day === undefined) throw new RangeError('no day is left');
    return day * DAY + times.first * SECOND;
  }

  function firstIn(segment: Segment, from: number): number {
    const { offset, before } = segment;
    const settled = settledAt(segment);
    // A daily time has run already when it comes again. A schedule of several times a day would pause meanwhile.
    const skipsRepeated = offset < before && times.perDay === 1;
    const regular = localFrom((skipsRepeated ? Math.max(from, settled) : from) + offset) - offset;
    if (offset <= before || from >= settled) return regular;
    // Skipped local times run as if the clock had not been put forward.
    const skipped = localFrom(from + before) - before;
    return skipped < settled ? Math.min(skipped, regular) : regular;
  }

  function nextAfter(ms: number): number {
    let from = wholeSecondAfter(ms);
    for (;;) {
      const segment = zone.segmentAt(from);
      const run = firstIn(segment, from);
      if (run < segment.end) return run;
      from = segment.end;
    }
  }

  function lastBetween(after: number, until: number): number | undefined {
    let last = nextAfter(after);
    if (last > until) return undefined;
    let end = until;
    while (last < end) {
      const middle = Math.floor((last + end) / 2);
      const run = nextAfter(middle);
      if (run > until) end = middle;
      else last = run;
    }
    return last;
  }

  /** Returns the number of local times in [from, to). */
  function localCount(from: number, to: number): number {
    const firstDay = Math.floor(from / DAY);
    const lastDay = Math.floor(to / DAY);
    const onLastDay = countBefore(lastDay, to);
    return days.count(firstDay, lastDay) * times.perDay + onLastDay - countBefore(firstDay, from);
  }

  function countBefore(day: number, local: number): number {
    return days.next(day) === day ? times.countBefore((local - day * DAY) / SECOND) : 0;
  }

  function countBetween(after: number, until: number, max: number): number {
    let count = 0;
    let done = after;
    while (done < until && count < max) {
      const segment = zone.segmentAt(done + 1);
      if (done + 1 < settledAt(segment)) {
        done = nextAfter(done);
        if (done <= until) count += 1;
      } else {
        const end = Math.min(segment.end - 1, until);
        const { offset } = segment;
        count += localCount(wholeSecondAfter(done) + offset, wholeSecondAfter(end) + offset);
        done = end;
      }
    }
    return Math.min(count, max);
  }

  return {
    nextAfter,
    lastBetween,
    countBetween,
    maxIntervalSeconds: (now) =>
      longestGap({ days, times, zone, nextAfter, lastBetween }, now, now + HORIZON) / SECOND,
  };
}

/** Returns when runs are regular again after local time jumped at the start of a segment. */
function settledAt({ start, offset, before }: Segment): number {
  return start + Math.abs(offset - before);
}

function wholeSecondAfter(ms: number): number {
  return (Math.floor(ms / SECOND) + 1) * SECOND;
}

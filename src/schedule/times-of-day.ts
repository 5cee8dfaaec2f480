import type { ParsedFields } from 'node-cron';

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** The times of a civil day at which an expression runs, in seconds from midnight. */
export interface TimesOfDay {
  /** Whether every hour matches. */
  readonly everyHour: boolean;
  readonly first: number;
  readonly last: number;
  readonly perDay: number;
  /** The longest gap between two times of one day, 0 if there is only one. */
  readonly longestGap: number;
  /** Returns the first time at or after this one; undefined if the day has none. */
  next(second: number): number | undefined;
  /** Returns the number of times before this one. */
  countBefore(second: number): number;
}

export function createTimesOfDay(fields: ParsedFields): TimesOfDay {
  const seconds = ascending(fields.second);
  const minutes = ascending(fields.minute);
  const hours = ascending(fields.hour);
  const perHour = minutes.length * seconds.length;
  const firstOfHour = lowest(minutes) * MINUTE + lowest(seconds);
  const lastOfHour = highest(minutes) * MINUTE + highest(seconds);

  function nextInHour(rest: number): number | undefined {
    const minute = Math.floor(rest / MINUTE);
    if (minutes.includes(minute)) {
      const second = seconds.find((value) => value >= rest % MINUTE);
      if (second !== undefined) return minute * MINUTE + second;
    }
    const later = minutes.find((value) => value > minute);
    return later === undefined ? undefined : later * MINUTE + lowest(seconds);
  }

  function next(second: number): number | undefined {
    const hour = Math.floor(second / HOUR);
    if (hours.includes(hour)) {
      const inHour = nextInHour(second % HOUR);
      if (inHour !== undefined) return hour * HOUR + inHour;
    }
    const later = hours.find((value) => value > hour);
    return later === undefined ? undefined : later * HOUR + firstOfHour;
  }

  function countBefore(second: number): number {
    const hour = Math.floor(second / HOUR);
    const minute = Math.floor((second % HOUR) / MINUTE);
    let count = below(hours, hour) * perHour;
    if (!hours.includes(hour)) return count;
    count += below(minutes, minute) * seconds.length;
    return minutes.includes(minute) ? count + below(seconds, second % MINUTE) : count;
  }

  return {
    everyHour: hours.length === 24,
    first: lowest(hours) * HOUR + firstOfHour,
    last: highest(hours) * HOUR + lastOfHour,
    perDay: hours.length * perHour,
    longestGap: Math.max(
      longestStep(seconds, 1, 0),
      longestStep(minutes, MINUTE, highest(seconds) - lowest(seconds)),
      longestStep(hours, HOUR, lastOfHour - firstOfHour),
    ),
    next,
    countBefore,
  };
}

/**
 * Returns the longest gap between two values of a field, in seconds. `spread` is the time from the first to the last run
 * within one value; it is subtracted from each gap.
 */
function longestStep(values: readonly number[], unit: number, spread: number): number {
  let longest = 0;
  for (const [index, value] of values.entries()) {
    const previous = values[index - 1];
    if (previous !== undefined) longest = Math.max(longest, (value - previous) * unit - spread);
  }
  return longest;
}

function ascending(values: readonly number[]): readonly number[] {
  return [...new Set(values)].toSorted((a, b) => a - b);
}

function lowest(values: readonly number[]): number {
  return values[0] ?? 0;
}

function highest(values: readonly number[]): number {
  return values.at(-1) ?? 0;
}

function below(values: readonly number[], limit: number): number {
  let count = 0;
  for (const value of values) if (value < limit) count += 1;
  return count;
}

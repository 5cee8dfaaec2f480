import type { ParsedFields } from 'node-cron';

const DAY = 24 * 60 * 60 * 1000;
/** Number of days to search: 29 February falls on a given weekday at least once in 40 years, 1900 and 2100 included. */
const MAX_DAYS = 41 * 366;

/** Number of answers that are kept: `check` prints five runs, and asks for the one after. */
const MAX_KNOWN = 6;

/** The civil days on which an expression runs, counted from 1 January 1970. */
export interface Days {
  /** Whether every day matches. */
  readonly every: boolean;
  /** Returns the first matching day from `day` on; undefined if there is none. */
  next(day: number): number | undefined;
  /** Returns the number of matching days in [from, to). */
  count(from: number, to: number): number;
}

type DayFields = Pick<ParsedFields, 'dayOfMonth' | 'month' | 'dayOfWeek'>;
type DayValue = number | string;

export function createDays(fields: DayFields): Days {
  const every =
    covers(fields.dayOfMonth, 1, 31) &&
    covers(fields.month, 1, 12) &&
    covers(fields.dayOfWeek, 0, 6);
  // Most calls ask for the same days, or for days before the same next match: the last answers are kept.
  let known: readonly { readonly from: number; readonly answer: number }[] = [];

  function search(day: number): number | undefined {
    let candidate = day;
    while (candidate < day + MAX_DAYS) {
      const midnight = new Date(candidate * DAY);
      if (fields.month.includes(midnight.getUTCMonth() + 1)) {
        if (matches(fields, midnight)) return candidate;
        candidate += 1;
      } else {
        candidate += lengthOfMonth(midnight) + 1 - midnight.getUTCDate();
      }
    }
    return undefined;
  }

  function next(day: number): number | undefined {
    if (every) return day;
    const before = known.find(({ from, answer }) => from <= day && day <= answer);
    if (before !== undefined) return before.answer;
    const answer = search(day);
    if (answer !== undefined) known = [{ from: day, answer }, ...known.slice(0, MAX_KNOWN - 1)];
    return answer;
  }

  function count(from: number, to: number): number {
    if (every) return to - from;
    let found = 0;
    for (let day = next(from); day !== undefined && day < to; day = next(day + 1)) found += 1;
    return found;
  }

  return { every, next, count };
}

function covers(values: readonly DayValue[], first: number, last: number): boolean {
  for (let value = first; value <= last; value += 1) if (!values.includes(value)) return false;
  return true;
}

/**
 * Returns whether a day of a matching month matches, given as its midnight in UTC. `match` of a node-cron task returns the
 * same, but takes 8 µs: too long for each day of many years.
 */
function matches({ dayOfMonth, dayOfWeek }: DayFields, midnight: Date): boolean {
  const date = midnight.getUTCDate();
  const weekday = midnight.getUTCDay();
  return (
    (dayOfWeek.includes(weekday) || dayOfWeek.some((value) => isSpecialWeekday(value, midnight))) &&
    (dayOfMonth.includes(date) || dayOfMonth.some((value) => specialDate(value, midnight) === date))
  );
}

/** Returns whether a day is the last Friday of its month for `5L`, the second one for `5#2`. */
function isSpecialWeekday(value: DayValue, day: Date): boolean {
  if (typeof value === 'number' || Number.parseInt(value, 10) !== day.getUTCDay()) return false;
  const date = day.getUTCDate();
  if (value.endsWith('L')) return date + 7 > lengthOfMonth(day);
  return Math.ceil(date / 7) === Number(value.at(-1));
}

/** Returns the date of `L`, `L-3`, `15W` or `LW` in the month of this day; undefined if the month has none. */
function specialDate(value: DayValue, day: Date): number | undefined {
  if (typeof value === 'number') return undefined;
  const last = lengthOfMonth(day);
  if (!value.endsWith('W')) return last - Number(value.slice(2));
  const target = value === 'LW' ? last : Number.parseInt(value, 10);
  if (target > last) return undefined;
  // The nearest day from Monday to Friday of the same month.
  const weekday = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), target)).getUTCDay();
  if (weekday === 6) return target === 1 ? 3 : target - 1;
  if (weekday === 0) return target === last ? target - 2 : target + 1;
  return target;
}

function lengthOfMonth(day: Date): number {
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 0)).getUTCDate();
}

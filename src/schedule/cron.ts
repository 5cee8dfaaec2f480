import { validateDetailed, type CronFieldError, type ParsedFields } from 'node-cron';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
/** How far longest intervals look ahead: over two leap days, except around 2100. */
const HORIZON = 9 * 366 * DAY;
/** Number of days in which an expression must match: 29 February falls on a given weekday at least once in 40 years. */
const MAX_DAYS = 41 * 366;
/** Maximum number of schedules, and of days, that are kept to be shared. */
const MAX_SHARED = 20_000;

/** The runs of a cron expression in a time zone (docs/specification.md#schedules). Times are epoch ms. */
export interface Schedule {
  /** Returns the first run after this moment, on a whole second. */
  nextAfter(ms: number): number;
  /**
   * Returns the longest gap between two runs in the 9 years from `now` on, ms (docs/metrics.md#schedule). Calculated once. Exact
   * where clocks do not change; elsewhere never shorter than a gap, and longer by at most twice the change.
   */
  maxIntervalMs(now: number): number;
  /** Number of runs of an average day in the year from `now` on. */
  runsPerDay(now: number): number;
}

/** A local time is the epoch ms of the same civil time in UTC. */
interface Expression {
  readonly days: Days;
  /** Ascending, in ms from the beginning of a day, an hour and a minute. */
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
  readonly seconds: readonly number[];
}

/** The days that match, as numbers from 1 January 1970 on. */
interface Days {
  readonly fields: ParsedFields;
  readonly isEvery: boolean;
  /** Longest gap between two days; undefined before it was asked for. */
  longestGap: number | undefined;
}

const DAYS_OF_YEAR = 365;

/** Schedules by zone and expression: thousands of projects may share one. */
const shared = new Map<string, Schedule>();
/** Expressions, or their faults, by their text: a configuration is checked before it is scheduled. */
const sharedExpressions = new Map<string, Expression | string>();
/** Days by their fields: to find the longest gap takes a millisecond. */
const sharedDays = new Map<string, Days>();

/** Returns the fault of a cron expression (docs/specification.md#cron-expressions) as `must …`; undefined if it is valid. */
export function validateSchedule(expression: string): string | undefined {
  const read = expressionOf(expression);
  return typeof read === 'string' ? read : undefined;
}

/** @throws {RangeError} if the expression has a fault or there is no such time zone */
export function parseSchedule(expression: string, timezone: string): Schedule {
  const key = `${timezone} ${expression}`;
  return sharedIn(shared, key, () => {
    const read = expressionOf(expression);
    if (typeof read === 'string') throw new RangeError(`the schedule ${read}`);
    return createSchedule(read, zoneOf(timezone));
  });
}

/** The schedules of a project. */
interface Schedules {
  readonly schedule: string;
  readonly idleSchedule?: string | undefined;
  readonly timezone: string;
}

/** Returns the longest interval of a project's schedules, ms; 0 for a project that is not configured. */
export function maxIntervalOf(project: Schedules | undefined, now: number): number {
  if (project === undefined) return 0;
  const { schedule, idleSchedule = schedule, timezone } = project;
  const intervals = [schedule, idleSchedule].map((each) =>
    parseSchedule(each, timezone).maxIntervalMs(now),
  );
  return Math.max(...intervals);
}

/** Returns the last run after a time and until another one, epoch ms; undefined if there is none. */
export function lastRun(schedule: Schedule, after: number, until: number): number | undefined {
  let last = schedule.nextAfter(after);
  if (last > until) return undefined;
  // Halves the time that is left, until no run is left in it.
  for (let end = until; last < end;) {
    const middle = Math.floor((last + end) / 2);
    const next = schedule.nextAfter(middle);
    if (next <= until) last = next;
    else end = middle;
  }
  return last;
}

function expressionOf(text: string): Expression | string {
  return sharedIn(sharedExpressions, text, () => readExpression(text));
}

/** Returns the value of this key, which is made when it is first asked for. */
function sharedIn<Value>(known: Map<string, Value>, key: string, make: () => Value): Value {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    if (known.size >= MAX_SHARED) known.clear();
    known.set(key, value);
  }
  return value;
}

function createSchedule(expression: Expression, zone: Zone): Schedule {
  const { hours, minutes, seconds } = expression;
  const isOnceADay = hours.length * minutes.length * seconds.length === 1;
  let maxIntervalMs: number | undefined;

  /** Returns the first run of a segment from this moment on, as if the segment had no end. */
  function firstIn({ start, offset, before }: Segment, from: number): number {
    /** From then on local time is regular again after it jumped at the start. */
    const settled = start + Math.abs(offset - before);
    // A daily time has run already when it comes again. A schedule of several times a day would pause meanwhile.
    const skipsRepeated = offset < before && isOnceADay;
    const regular =
      firstLocal(expression, (skipsRepeated ? Math.max(from, settled) : from) + offset) - offset;
    if (offset <= before || from >= settled) return regular;
    // Skipped local times run as if the clock had not been put forward.
    const skipped = firstLocal(expression, from + before) - before;
    return skipped < settled ? Math.min(skipped, regular) : regular;
  }

  return {
    nextAfter: (ms) => {
      let from = (Math.floor(ms / SECOND) + 1) * SECOND;
      for (;;) {
        const segment = segmentAt(zone, from);
        const run = firstIn(segment, from);
        if (run < segment.end) return run;
        // Nothing runs until a day before this run, except local times that come twice after the end of the segment.
        from = segment.end - from > DAY ? Math.max(segment.end, run - DAY) : segment.end;
      }
    },
    maxIntervalMs: (now) => (maxIntervalMs ??= longestInterval(expression, zone, now)),
    runsPerDay: (now) => {
      const [today, end] = [Math.floor(now / DAY), Math.floor(now / DAY) + DAYS_OF_YEAR];
      let count = 0;
      for (let day = today; day < end; day += 1) {
        day = nextDay(expression.days, day);
        if (day < end) count += 1;
      }
      return (hours.length * minutes.length * seconds.length * count) / DAYS_OF_YEAR;
    },
  };
}

/** Returns the longest gap between local times, plus what changes of clocks may add to it. */
function longestInterval(expression: Expression, zone: Zone, now: number): number {
  const { days, hours, minutes, seconds } = expression;
  const offsets = (zone.offsets ??= offsetsFrom(zone, now));
  const lowest = Math.min(...offsets);
  const jump = Math.max(...offsets) - lowest;
  // Times that are the same in each hour, or minute, do not notice a jump of whole hours, or minutes.
  const period = hours.length < 24 ? Infinity : minutes.length < 60 ? HOUR : MINUTE;
  const isEven = offsets.every((offset) => (offset - lowest) % period === 0);
  const longestOfDay = Math.max(
    longestStep(seconds),
    longestStep(minutes) - spread(seconds),
    longestStep(hours) - spread(minutes) - spread(seconds),
  );
  const betweenDays =
    longestDayGap(days, now) * DAY - spread(hours) - spread(minutes) - spread(seconds);
  return Math.max(
    longestOfDay + (isEven ? 0 : jump),
    betweenDays + (isEven && days.isEvery ? 0 : jump),
  );
}

/** Returns the first matching local time from this one on. */
function firstLocal(expression: Expression, local: number): number {
  const today = Math.floor(local / DAY);
  let day = nextDay(expression.days, today);
  if (day === today) {
    const time = timeOfDay(expression, local - today * DAY);
    if (time !== undefined) return today * DAY + time;
    day = nextDay(expression.days, today + 1);
  }
  return day * DAY + (timeOfDay(expression, 0) ?? 0);
}

/** Returns the first matching time of a day from this one on, ms; undefined if the day has none. */
function timeOfDay({ hours, minutes, seconds }: Expression, from: number): number | undefined {
  for (const hour of hours) {
    if (hour + HOUR <= from) continue;
    for (const minute of minutes) {
      if (hour + minute + MINUTE <= from) continue;
      for (const second of seconds)
        if (hour + minute + second >= from) return hour + minute + second;
    }
  }
  return undefined;
}

function spread(values: readonly number[]): number {
  return (values.at(-1) ?? 0) - (values[0] ?? 0);
}

function longestStep(values: readonly number[]): number {
  return Math.max(0, ...values.slice(1).map((value, index) => value - (values[index] ?? 0)));
}

/** Returns the first matching day from this one on; Infinity if there is none. */
function nextDay({ fields, isEvery }: Days, from: number): number {
  if (isEvery) return from;
  let day = from;
  while (day < from + MAX_DAYS) {
    const midnight = new Date(day * DAY);
    if (fields.month.includes(midnight.getUTCMonth() + 1)) {
      if (isDate(fields, midnight) && isWeekday(fields, midnight)) return day;
      day += 1;
    } else {
      day += lengthOfMonth(midnight) + 1 - midnight.getUTCDate();
    }
  }
  return Infinity;
}

/** Returns the longest gap between two matching days that begins within the horizon. */
function longestDayGap(days: Days, now: number): number {
  if (days.longestGap !== undefined) return days.longestGap;
  const end = (now + HORIZON) / DAY;
  let longest = 0;
  let day = nextDay(days, Math.floor(now / DAY) - 1);
  do {
    const next = nextDay(days, day + 1);
    longest = Math.max(longest, next - day);
    day = next;
  } while (day <= end);
  return (days.longestGap = longest);
}

/** Returns whether the date of this day matches, given as its midnight in UTC: a number, or `L`, `L-3`, `15W`, `LW`. */
function isDate({ dayOfMonth }: ParsedFields, midnight: Date): boolean {
  const date = midnight.getUTCDate();
  return dayOfMonth.some((value) => {
    if (typeof value === 'number') return value === date;
    const last = lengthOfMonth(midnight);
    if (!value.endsWith('W')) return last - Number(value.slice(2)) === date;
    const target = value === 'LW' ? last : Number.parseInt(value, 10);
    if (target > last) return false;
    // The nearest day from Monday to Friday of the same month.
    const weekday = (midnight.getUTCDay() + 35 + target - date) % 7;
    if (weekday === 6) return (target === 1 ? 3 : target - 1) === date;
    if (weekday === 0) return (target === last ? target - 2 : target + 1) === date;
    return target === date;
  });
}

/** Returns whether the weekday of this day matches: a number, `5L` for the last Friday of the month, `5#2` for the second. */
function isWeekday({ dayOfWeek }: ParsedFields, midnight: Date): boolean {
  const date = midnight.getUTCDate();
  return dayOfWeek.some((value) => {
    if (Number.parseInt(String(value), 10) !== midnight.getUTCDay()) return false;
    if (typeof value === 'number') return true;
    if (value.endsWith('L')) return date + 7 > lengthOfMonth(midnight);
    return Math.ceil(date / 7) === Number(value.at(-1));
  });
}

function lengthOfMonth(day: Date): number {
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 0)).getUTCDate();
}

/** Name and allowed values of each of node-cron's fields. */
const FIELDS: Readonly<Record<string, readonly [name: string, range: string]>> = {
  second: ['second', '0 to 59'],
  minute: ['minute', '0 to 59'],
  hour: ['hour', '0 to 23'],
  dayOfMonth: ['day of month', '1 to 31, or as in L, L-3, 15W, LW'],
  month: ['month', '1 to 12 or jan to dec'],
  dayOfWeek: ['weekday', '0 to 7 or sun to sat, or as in 5L, 2#3'],
};

const NEVER = 'must be a cron expression that matches at least one date; this one matches none';

/**
 * Reads an expression of 5 fields, or 6 with seconds first, with white space of any kind between them
 * (docs/specification.md#cron-expressions). Returns its fault, as `must …`, if it is not valid.
 */
function readExpression(text: string): Expression | string {
  const given = text.split(/\s+/).filter((field) => field !== '');
  if (given.length !== 5 && given.length !== 6) {
    return `must be a cron expression of 5 fields, or 6 with seconds first, not ${given.length}`;
  }
  // node-cron replaces a star with a range even inside a number (5* becomes 50-59), and expands ranges of any length.
  const malformed = given.find((field) => /[^,]\*|\*[^,/]|\d{3}/.test(field));
  if (malformed !== undefined) return `must be a cron expression; no field can be "${malformed}"`;
  const { fields, errors } = validateDetailed(given.join(' '));
  if (fields === undefined) {
    const anyMonth = validateDetailed(given.with(given.length - 2, '*').join(' '));
    const noSuchDate = anyMonth.valid && errors.every(({ field }) => field === 'dayOfMonth');
    return noSuchDate ? NEVER : `must be a cron expression; ${errors.map(faultText).join(', ')}`;
  }
  const days = sharedIn(sharedDays, given.slice(-3).join(' '), () => daysOf(fields));
  if (nextDay(days, 0) === Infinity) return NEVER;
  return {
    days,
    hours: ascending(fields.hour, HOUR),
    minutes: ascending(fields.minute, MINUTE),
    seconds: ascending(fields.second, SECOND),
  };
}

function daysOf(fields: ParsedFields): Days {
  const { dayOfMonth, month, dayOfWeek } = fields;
  const isEvery = hasAll(dayOfMonth, 1, 31) && hasAll(month, 1, 12) && hasAll(dayOfWeek, 0, 6);
  return { fields, isEvery, longestGap: undefined };
}

function faultText({ field, value = '' }: CronFieldError): string {
  const known = FIELDS[field];
  if (known === undefined) return 'it contains characters that no field allows';
  const [name, range] = known;
  return `"${value}" is not a valid ${name} (${range})`;
}

function hasAll(values: readonly (number | string)[], first: number, last: number): boolean {
  for (let value = first; value <= last; value += 1) if (!values.includes(value)) return false;
  return true;
}

function ascending(values: readonly number[], unit: number): readonly number[] {
  return [...new Set(values)].toSorted((a, b) => a - b).map((value) => value * unit);
}

/** A period in which the offset of a zone from UTC stays the same. All in ms; times are epoch ms. */
interface Segment {
  readonly start: number;
  /** Exclusive. The zone may keep its offset after it. */
  readonly end: number;
  /** Local time minus UTC. */
  readonly offset: number;
  /** The offset until `start`; the same as `offset` if nothing changed there. */
  readonly before: number;
}

interface Zone {
  readonly offsetAt: (ms: number) => number;
  /** The segment that was asked for last: Intl takes 2 µs for an offset, and nearly all questions are about today. */
  segment: Segment | undefined;
  /** All of the coming years. */
  offsets: readonly number[] | undefined;
}

const zones = new Map<string, Zone>();

/** @throws {RangeError} if there is no such time zone */
function zoneOf(name: string): Zone {
  return sharedIn(zones, name, () => {
    // Intl takes 20 ms for its first format, and most daemons need none.
    if (name === 'UTC') return { offsetAt: () => 0, segment: undefined, offsets: undefined };
    const format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' });
    const offsetAt = (ms: number) => {
      const parts = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(ms));
      if (parts === null) return 0;
      const [, sign, hours, minutes, seconds = 0] = parts;
      const offset = Number(hours) * HOUR + Number(minutes) * MINUTE + Number(seconds) * SECOND;
      return sign === '-' ? -offset : offset;
    };
    return { offsetAt, segment: undefined, offsets: undefined };
  });
}

/** Returns the segment of this moment. No zone changes its offset and changes it back within a week. */
function segmentAt(zone: Zone, ms: number): Segment {
  const { segment, offsetAt } = zone;
  if (segment !== undefined && segment.start <= ms && ms < segment.end) return segment;
  const today = Math.floor(ms / DAY) * DAY;
  // A change up to a day ago may still matter: the segment begins after all others.
  const first = today - DAY;
  const last = first + WEEK;
  const before = offsetAt(first);
  const offset = offsetAt(last);
  if (before === offset) return (zone.segment = { start: today, end: last, offset, before });
  let same = first / SECOND;
  let changed = last / SECOND;
  while (changed - same > 1) {
    const middle = Math.floor((same + changed) / 2);
    if (offsetAt(middle * SECOND) === before) same = middle;
    else changed = middle;
  }
  const change = changed * SECOND;
  return (zone.segment =
    ms < change
      ? { start: today, end: change, offset: before, before }
      : { start: change, end: last, offset, before });
}

function offsetsFrom({ offsetAt }: Zone, now: number): readonly number[] {
  const found = new Set<number>();
  for (let at = now; at <= now + HORIZON; at += WEEK) found.add(offsetAt(at));
  return [...found];
}

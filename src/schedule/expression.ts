import { parse, validateDetailed, type CronFieldError, type ParsedFields } from 'node-cron';
import { createDays, type Days } from './days.ts';
import { createTimesOfDay, type TimesOfDay } from './times-of-day.ts';

/** What a cron expression says, the time zone left out. */
export type Expression =
  | { readonly days: Days; readonly times: TimesOfDay; readonly fault?: never }
  /** What is wrong with it, the end of a sentence about it. */
  | { readonly fault: string };

/** Names of node-cron's fields, and what may stand in them. */
const FIELDS: Readonly<Record<string, readonly [name: string, range: string]>> = {
  second: ['second', '0 to 59'],
  minute: ['minute', '0 to 59'],
  hour: ['hour', '0 to 23'],
  dayOfMonth: ['day of month', '1 to 31, or as in L, L-3, 15W, LW'],
  month: ['month', '1 to 12 or jan to dec'],
  dayOfWeek: ['weekday', '0 to 7 or sun to sat, or as in 5L, 2#3'],
};

const NEVER = 'must be a cron expression that runs on some day; no date is as this one says';

/**
 * Reads an expression of 5 fields, or 6 with seconds first; day of month and weekday must both match
 * (docs/specification.md#cron-expressions).
 * White space of any kind separates fields.
 */
export function readExpression(text: string): Expression {
  const given = text.split(/\s+/).filter((field) => field !== '');
  if (given.length !== 5 && given.length !== 6) {
    return {
      fault: `must be a cron expression of 5 fields, or 6 with seconds first, not ${given.length}`,
    };
  }
  // node-cron puts a range in the place of a star (to it 5* is 50-59) and writes ranges out, however long they are.
  const odd = given.find((field) => /[^,]\*|\*[^,/]|\d{3}/.test(field));
  if (odd !== undefined) return { fault: wrong(`no field can be "${odd}"`) };
  const expression = given.join(' ');
  const { valid, errors } = validateDetailed(expression);
  if (!valid) {
    const anyMonth = validateDetailed(given.with(given.length - 2, '*').join(' '));
    const noSuchDate = anyMonth.valid && errors.every(({ field }) => field === 'dayOfMonth');
    return { fault: noSuchDate ? NEVER : wrong(errors.map(faultText).join(', ')) };
  }
  const fields = parse(expression);
  const days = daysOf(fields);
  return days.next(0) === undefined ? { fault: NEVER } : { days, times: createTimesOfDay(fields) };
}

/** More than configurations have; what others there are is worked out each time. */
const MAX_SHARED_DAYS = 100;
const sharedDays = new Map<string, Days>();

/** Thousands of schedules may run on the same days. */
function daysOf({ dayOfMonth, month, dayOfWeek }: ParsedFields): Days {
  const key = JSON.stringify([dayOfMonth, month, dayOfWeek]);
  const days = sharedDays.get(key) ?? createDays({ dayOfMonth, month, dayOfWeek });
  if (sharedDays.size < MAX_SHARED_DAYS) sharedDays.set(key, days);
  return days;
}

function wrong(what: string): string {
  return `must be a cron expression; ${what}`;
}

function faultText({ field, value = '' }: CronFieldError): string {
  const known = FIELDS[field];
  if (known === undefined) return 'it has characters that no field has';
  const [name, range] = known;
  return `"${value}" is no ${name} (${range})`;
}

import { parse, validateDetailed, type CronFieldError, type ParsedFields } from 'node-cron';
import { createDays, type Days } from './days.ts';
import { createTimesOfDay, type TimesOfDay } from './times-of-day.ts';

/** The days and times of a cron expression, without a time zone. */
export type Expression =
  | { readonly days: Days; readonly times: TimesOfDay; readonly fault?: never }
  /** The error, written to follow the name of the option: `must …`. */
  | { readonly fault: string };

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

/** Maximum size of each of the maps below, more than most configurations need. */
const MAX_KEPT = 100;
/** Valid expressions by their text. A start reads each one several times. */
const readBefore = new Map<string, Expression>();
/** Days by the fields that name them: thousands of schedules may have the same. */
const sharedDays = new Map<string, Days>();

/**
 * Reads an expression of 5 fields, or 6 with seconds first; day of month and weekday must both match
 * (docs/specification.md#cron-expressions).
 * White space of any kind separates fields.
 */
export function readExpression(text: string): Expression {
  const before = readBefore.get(text);
  if (before !== undefined) return before;
  const expression = interpret(text);
  const isKept = expression.fault === undefined && readBefore.size < MAX_KEPT;
  if (isKept) readBefore.set(text, expression);
  return expression;
}

function interpret(text: string): Expression {
  const given = text.split(/\s+/).filter((field) => field !== '');
  if (given.length !== 5 && given.length !== 6) {
    return {
      fault: `must be a cron expression of 5 fields, or 6 with seconds first, not ${given.length}`,
    };
  }
  // node-cron replaces a star with a range even inside a number (5* becomes 50-59), and expands ranges of any length.
  const malformed = given.find((field) => /[^,]\*|\*[^,/]|\d{3}/.test(field));
  if (malformed !== undefined) return { fault: wrong(`no field can be "${malformed}"`) };
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

function daysOf({ dayOfMonth, month, dayOfWeek }: ParsedFields): Days {
  const key = JSON.stringify([dayOfMonth, month, dayOfWeek]);
  const days = sharedDays.get(key) ?? createDays({ dayOfMonth, month, dayOfWeek });
  if (sharedDays.size < MAX_KEPT) sharedDays.set(key, days);
  return days;
}

function wrong(what: string): string {
  return `must be a cron expression; ${what}`;
}

function faultText({ field, value = '' }: CronFieldError): string {
  const known = FIELDS[field];
  if (known === undefined) return 'it contains characters that no field allows';
  const [name, range] = known;
  return `"${value}" is not a valid ${name} (${range})`;
}

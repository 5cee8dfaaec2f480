import { join } from 'node:path';
import * as fc from 'fast-check';
import type * as CalendarRoom from '../../src/schedule/calendar.ts';
import { anyText } from '../../test/support/any-text.ts';
import { expressions } from '../../test/unit/schedule/arbitraries.ts';
import type { Surface } from './surface.ts';

const FIRST = Date.parse('2024-01-01T00:00:00Z');
const YEARS_MS = 4 * 366 * 24 * 3_600_000;
const PROBES = 20;

const scraps = fc.constantFrom(
  ...'* , - / ? # L W 0 1 5 7 59 60 99999999999 -1 mon feb @daily */5 1-5 \t \n ÿ ; 1e3 0x1'.split(
    ' ',
  ),
  ' ',
);
const nonsense = fc.oneof(
  fc.array(scraps, { maxLength: 14 }).map((parts) => parts.join('')),
  fc.array(scraps, { minLength: 5, maxLength: 6 }).map((parts) => parts.join(' ')),
  anyText({ maxLength: 20 }),
);
const moments = fc.integer({ min: 0, max: YEARS_MS }).map((ms) => FIRST + ms);

/** Returns a surface of all expressions, plain ones compared with a naive reader in UTC. */
export async function cron(source: string): Promise<readonly Surface[]> {
  const { parseSchedule, validateSchedule } = (await import(
    join(source, 'schedule/calendar.ts')
  )) as typeof CalendarRoom;

  function check(expression: string, at: number, probes: readonly number[]): void {
    const fault = validateSchedule(expression);
    if (fault !== undefined) {
      if (!fault.startsWith('must be a cron expression')) throw new Error(`says: ${fault}`);
      return;
    }
    const next = parseSchedule(expression, 'UTC').nextAfter(at);
    if (!(next > at) || next % 1000 !== 0) throw new Error(`next after ${at} is ${next}`);
    const matches = naively(expression);
    if (matches === undefined) return;
    if (!matches(next)) throw new Error(`${new Date(next).toISOString()} is no run`);
    for (const probe of probes) {
      const between = Math.floor((at + probe * (next - at)) / 1000) * 1000;
      if (between > at && between < next && matches(between)) {
        throw new Error(`${new Date(between).toISOString()} was left out`);
      }
    }
  }

  const probes = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
    minLength: PROBES,
    maxLength: PROBES,
  });
  return [
    {
      name: 'cron expressions',
      property: fc.property(fc.oneof(expressions, expressions, nonsense), moments, probes, check),
    },
  ];
}

/** Returns a test for runs; undefined for more than numbers, stars, ranges, steps and lists. */
function naively(expression: string): ((ms: number) => boolean) | undefined {
  const fields = expression.trim().split(/\s+/);
  if (fields.length === 5) fields.unshift('0');
  if (fields.some((field) => !/^[\d*/,-]+$/.test(field))) return undefined;
  const [second, minute, hour, day, month, weekday] = fields.map(reader);
  return (ms) => {
    const at = new Date(ms);
    return Boolean(
      second?.(at.getUTCSeconds(), 0, 59) &&
      minute?.(at.getUTCMinutes(), 0, 59) &&
      hour?.(at.getUTCHours(), 0, 23) &&
      day?.(at.getUTCDate(), 1, 31) &&
      month?.(at.getUTCMonth() + 1, 1, 12) &&
      (weekday?.(at.getUTCDay(), 0, 6) || (at.getUTCDay() === 0 && weekday?.(7, 0, 7))),
    );
  };
}

function reader(field: string): (value: number, min: number, max: number) => boolean {
  return (value, min, max) =>
    field.split(',').some((part) => {
      const [range = '', step = '1'] = part.split('/');
      const [from = '', to = from] = range.split('-');
      const first = range === '*' ? min : Number(from);
      const last = range === '*' || (part.includes('/') && !range.includes('-')) ? max : Number(to);
      const isIn =
        first <= last ? value >= first && value <= last : value >= first || value <= last;
      const distance = value >= first ? value - first : value + (max - min + 1) - first;
      return isIn && distance % Number(step) === 0;
    });
}

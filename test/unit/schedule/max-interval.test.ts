import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseSchedule } from '../../../src/schedule/calendar.ts';
import { readExpression } from '../../../src/schedule/expression.ts';
import { longestGap } from '../../../src/schedule/longest-gap.ts';
import { zoneOf } from '../../../src/schedule/zone.ts';
import { dayFields, timeFields } from './arbitraries.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
const NOW = Date.parse('2025-11-21T10:00:00Z');

it.each([
  ['*/10 * * * * *', 'UTC', 10],
  ['*/10 * * * * *', 'Europe/Berlin', 10],
  ['* * * * * *', 'Australia/Lord_Howe', 1],
  ['*/7 * * * * *', 'UTC', 7],
  ['*/45 * * * * *', 'UTC', 45],
  ['*/30 * * * *', 'Australia/Lord_Howe', HOUR / 2],
  ['0,5 * * * *', 'UTC', 55 * 60],
  ['0 * * * *', 'Asia/Kolkata', HOUR],
  ['0 * * * *', 'Australia/Lord_Howe', 1.5 * HOUR],
  ['0 */2 * * *', 'Europe/Berlin', 2 * HOUR],
  ['0 1-23/2 * * *', 'Europe/Berlin', 3 * HOUR],
  ['30 2 * * *', 'UTC', DAY],
  ['30 2 * * *', 'Europe/Berlin', DAY + HOUR],
  ['0 9 * * 1-5', 'UTC', 3 * DAY],
  ['0 9 * * 1-5', 'Europe/Berlin', 3 * DAY + HOUR],
  ['* 9-17 * * 1-5', 'UTC', 2 * DAY + 15 * HOUR + 60],
  ['0 0 1 * *', 'UTC', 31 * DAY],
  ['0 0 1 1 *', 'UTC', 366 * DAY],
  ['0 0 29 2 *', 'Europe/Berlin', 1461 * DAY],
  ['0 0 29 2 1', 'UTC', 28 * 365.25 * DAY],
  ['0 0,12 29 2 *', 'UTC', 1461 * DAY - 12 * HOUR],
])('%j in %s pauses for at most %d s', (expression, zone, seconds) => {
  expect(parseSchedule(expression, zone).maxIntervalSeconds(NOW)).toBe(seconds);
});

it('the longest gap equals the longest one that a walk from run to run finds', () => {
  fc.assert(
    fc.property(
      timeFields,
      dayFields,
      fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/Santiago'),
      fc.integer({ min: 0, max: 900 }),
      (times, days, zone, daysFromNow) => {
        const expression = `${times} ${days}`;
        const from = NOW + daysFromNow * DAY * 1000;
        const until = from + 420 * DAY * 1000;
        const schedule = parseSchedule(expression, zone);
        const read = readExpression(expression);
        if (read.fault !== undefined) throw new Error(read.fault);
        let walked = 0;
        for (let at = schedule.nextAfter(from); at <= until;) {
          const next = schedule.nextAfter(at);
          walked = Math.max(walked, next - at);
          at = next;
        }
        expect(longestGap({ ...schedule, ...read, zone: zoneOf(zone) }, from, until)).toBe(walked);
      },
    ),
    { numRuns: 60 },
  );
});

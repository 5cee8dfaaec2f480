import * as fc from 'fast-check';
import { createTask } from 'node-cron';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { parseSchedule, validateSchedule } from '../../../src/schedule/cron.ts';
import { dayFields, expressions, timeFields } from './arbitraries.ts';
import { runsAfter } from './runs.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
const NOW = Date.parse('2025-11-21T10:00:00Z');

afterEach(() => vi.useRealTimers());

describe('a schedule', () => {
  it.each([
    ['*/10 * * * * *', 'UTC', '2025-11-21T10:00:09.999Z', ['2025-11-21T10:00:10Z']],
    ['*/10 * * * * *', 'UTC', '2025-12-31T23:59:50Z', ['2026-01-01T00:00:00Z']],
    ['30 9 * * *', 'Asia/Kolkata', '2025-11-21T00:00:00Z', ['2025-11-21T04:00:00Z']],
    ['0 22-2/2 * * *', 'UTC', '2025-11-22T00:00:00Z', ['2025-11-22T02:00:00Z']],
    ['0 0 L-3 2 *', 'UTC', '2025-11-21T00:00:00Z', ['2026-02-25T00:00:00Z']],
    ['0 0 15W 11 *', 'UTC', '2026-11-01T00:00:00Z', ['2026-11-16T00:00:00Z']],
    ['0 0 * * 5L', 'UTC', '2025-11-01T00:00:00Z', ['2025-11-28T00:00:00Z', '2025-12-26T00:00:00Z']],
    ['0 0 13 * 5', 'UTC', '2025-11-21T00:00:00Z', ['2026-02-13T00:00:00Z', '2026-03-13T00:00:00Z']],
    ['0 0 29 2 1', 'UTC', '2025-11-21T00:00:00Z', ['2044-02-29T00:00:00Z']],
    ['0 0 29 2 *', 'UTC', '2096-03-01T00:00:00Z', ['2104-02-29T00:00:00Z']],
    ['0\t0  * * *', 'UTC', '2025-11-21T00:00:00Z', ['2025-11-22T00:00:00Z']],
  ])('%j in %s runs after %s at %j', (expression, zone, from, runs) => {
    expect(runsAfter(parseSchedule(expression, zone), from, runs.length)).toEqual(runs);
  });

  it('is rejected for an invalid expression or an unknown time zone', () => {
    expect(() => parseSchedule('61 * * * *', 'UTC')).toThrow(RangeError);
    expect(() => parseSchedule('0 0 31W 2 *', 'UTC')).toThrow(RangeError);
    expect(() => parseSchedule('* * * * *', 'Mars/Olympus')).toThrow(RangeError);
  });

  it.each(['UTC', 'Asia/Kolkata'])(
    'runs in %s, a zone without clock changes, at the same times as in node-cron',
    (zone) => {
      vi.useFakeTimers({ toFake: ['Date'] });
      fc.assert(
        fc.property(expressions, moments(), (expression, from) => {
          vi.setSystemTime(from);
          const task = createTask(expression, () => undefined, { timezone: zone });
          const expected = task.getNextRuns(3).map(Number);
          void task.destroy();
          const schedule = parseSchedule(expression, zone);
          const runs: number[] = [];
          for (let at = from; runs.length < 3; runs.push(at)) at = schedule.nextAfter(at);
          expect(runs).toEqual(expected);
        }),
        { numRuns: 300 },
      );
    },
  );
});

function moments() {
  return fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2036-01-01') });
}

it.each([
  '* * * * *',
  '*/30 * * * * *',
  '  0 9 * * 1-5  ',
  '0 0 1 jan,JUL mon-FRI',
  '0 0 ? * 7',
  '0 0 L-3,15W,LW * *',
  '0 0 * * 2#3,5L',
  '0 0 29 2 *',
  '0 0 29 2 1#5',
  '0 22-2 * * sat-sun',
])('%j is a valid schedule', (expression) => {
  expect(validateSchedule(expression)).toBeUndefined();
});

it.each([
  ['', 'of 5 fields, or 6 with seconds first, not 0'],
  ['* * * *', 'not 4'],
  ['* * * * * * *', 'not 7'],
  ['@daily', 'not 1'],
  ['61 * * * *', '"61" is not a valid minute (0 to 59)'],
  ['60 * * * * *', '"60" is not a valid second (0 to 59)'],
  ['0 24 * * *', '"24" is not a valid hour (0 to 23)'],
  ['0 0 32 * *', '"32" is not a valid day of month'],
  ['0 0 0 * *', '"0" is not a valid day of month'],
  ['0 0 * 13 *', '"13" is not a valid month (1 to 12 or jan to dec)'],
  ['0 0 * * 8', '"8" is not a valid weekday'],
  ['0 0 * * 1#6', '"1#6" is not a valid weekday'],
  ['*/0 * * * *', '"*/0" is not a valid minute'],
  ['1,,2 * * * *', '"1,,2" is not a valid minute'],
  ['0 ? * * *', '"?" is not a valid hour'],
  ['0 25 * foo *', '"25" is not a valid hour (0 to 23), "foo" is not a valid month'],
  ['0 5* * * *', 'no field can be "5*"'],
  ['0 *,*5 * * *', 'no field can be "*,*5"'],
  ['0-9999999999 * * * *', 'no field can be "0-9999999999"'],
  ['$ * * * *', 'it contains characters that no field allows'],
  ['0 0 30 2 *', 'matches at least one date'],
  ['0 0 31 4,6 *', 'matches at least one date'],
  ['0 0 31W 2 *', 'matches at least one date'],
  ['0 0 1 1 1#2', 'matches at least one date'],
])('%j is rejected: %s', (expression, fault) => {
  expect(validateSchedule(expression)).toMatch(/^must be a cron expression/);
  expect(validateSchedule(expression)).toContain(fault);
});

it('schedules have their own times, however often they are read', () => {
  for (let round = 0; round < 2; round += 1) {
    for (let n = 1; n <= 25_000; n += 1000) {
      const second = `${n % 60} ${Math.floor(n / 60) % 60} ${Math.floor(n / 3600)}`;
      expect(parseSchedule(`${second} * * *`, 'UTC').nextAfter(0)).toBe(n * 1000);
    }
  }
});

it.each([
  ['*/10 * * * * *', 'UTC', 10],
  ['*/10 * * * * *', 'Europe/Berlin', 10],
  ['* * * * * *', 'Australia/Lord_Howe', 1],
  ['*/7 * * * * *', 'UTC', 7],
  ['*/45 * * * * *', 'UTC', 45],
  ['*/30 * * * * *', 'Australia/Lord_Howe', 30],
  ['*/30 * * * *', 'Australia/Lord_Howe', HOUR],
  ['0,5 * * * *', 'UTC', 55 * 60],
  ['0 * * * *', 'Asia/Kolkata', HOUR],
  ['0 * * * *', 'Australia/Lord_Howe', 1.5 * HOUR],
  ['0 */2 * * *', 'UTC', 2 * HOUR],
  ['0 */2 * * *', 'Europe/Berlin', 3 * HOUR],
  ['0 1-23/2 * * *', 'Europe/Berlin', 3 * HOUR],
  ['0 0,20 * * *', 'Europe/Berlin', 21 * HOUR],
  ['30 2 * * *', 'UTC', DAY],
  ['30 2 * * *', 'Europe/Berlin', DAY + HOUR],
  ['0 9 * * 1-5', 'UTC', 3 * DAY],
  ['0 9 * * 1-5', 'Europe/Berlin', 3 * DAY + HOUR],
  ['* 9-17 * * 1-5', 'UTC', 2 * DAY + 15 * HOUR + 60],
  ['0 0 1 * *', 'UTC', 31 * DAY],
  ['0 0 1 1 *', 'UTC', 366 * DAY],
  ['0 0 29 2 *', 'UTC', 1461 * DAY],
  ['0 0 29 2 *', 'Europe/Berlin', 1461 * DAY + HOUR],
  ['0 0 29 2 1', 'UTC', 28 * 365.25 * DAY],
  ['0 0,12 29 2 *', 'UTC', 1461 * DAY - 12 * HOUR],
])('%j in %s pauses for at most %d s', (expression, zone, seconds) => {
  expect(parseSchedule(expression, zone).maxIntervalMs(NOW)).toBe(seconds * 1000);
});

describe('the longest interval', () => {
  const walk = (expression: string, zone: string, days: number) => {
    const schedule = parseSchedule(expression, zone);
    const until = NOW + days * DAY * 1000;
    let longest = 0;
    for (let at = schedule.nextAfter(NOW), next; at <= until; at = next) {
      next = schedule.nextAfter(at);
      longest = Math.max(longest, next - at);
    }
    return longest;
  };

  it('is not shorter than any gap that a walk from run to run finds', () => {
    const zones = fc.constantFrom('Europe/Berlin', 'Australia/Lord_Howe', 'America/Santiago');
    fc.assert(
      fc.property(timeFields, dayFields, zones, (times, days, zone) => {
        const expression = `${times} ${days}`;
        const interval = parseSchedule(expression, zone).maxIntervalMs(NOW);
        expect(interval).toBeGreaterThanOrEqual(walk(expression, zone, 420));
      }),
      { numRuns: 60 },
    );
  });
});

import * as fc from 'fast-check';
import { createTask } from 'node-cron';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { parseSchedule } from '../../../src/schedule/calendar.ts';
import { dayFields, expressions, timeFields } from './arbitraries.ts';
import { runsAfter } from './runs.ts';

const HOUR = 60 * 60 * 1000;

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

describe('countBetween and lastBetween', () => {
  const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/Santiago');

  it('agree with a walk from run to run, even across clock changes', () => {
    fc.assert(
      fc.property(
        fc.tuple(timeFields, dayFields).map((fields) => fields.join(' ')),
        zones,
        fc.constantFrom(...JUMPS),
        fc.integer({ min: -30 * HOUR, max: 2 * HOUR }),
        fc.integer({ min: 0, max: 60 * HOUR }),
        (expression, zone, jump, lead, length) => {
          const schedule = parseSchedule(expression, zone);
          const after = jump + lead;
          const until = after + length;
          const runs: number[] = [];
          for (let at = after; ; runs.push(at)) {
            at = schedule.nextAfter(at);
            if (at > until) break;
          }
          expect(schedule.countBetween(after, until, Infinity)).toBe(runs.length);
          expect(schedule.countBetween(after, until, 3)).toBe(Math.min(3, runs.length));
          expect(schedule.lastBetween(after, until)).toBe(runs.at(-1));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('stop counting at the given maximum', () => {
    const every = parseSchedule('* * * * * *', 'Europe/Berlin');
    expect(every.countBetween(0, Date.parse('2025-11-21'), 100_000)).toBe(100_000);
    expect(every.countBetween(5000, 4000, 10)).toBe(0);
  });
});

/** Moments at which the clocks of one of the zones change. */
const JUMPS = [
  '2025-03-30T01:00:00Z',
  '2025-10-26T01:00:00Z',
  '2026-04-04T15:00:00Z',
  '2025-10-04T15:30:00Z',
  '2025-09-07T04:00:00Z',
  '2026-04-05T03:00:00Z',
].map((text) => Date.parse(text));

function moments() {
  return fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2036-01-01') });
}

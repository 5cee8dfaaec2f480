import * as fc from 'fast-check';
import { createTask } from 'node-cron';
import { describe, expect, it } from 'vitest';
import { parseSchedule } from '../../../src/schedule/calendar.ts';
import { dayFields, timeFields } from './arbitraries.ts';
import { runsAfter } from './runs.ts';

type Case = readonly [what: string, expression: string, zone: string, from: string, runs: string[]];

const spring: readonly Case[] = [
  [
    'a skipped time an hour later',
    '30 2 * * *',
    'Europe/Berlin',
    '2025-03-29T12:00:00Z',
    ['2025-03-30T01:30:00Z', '2025-03-31T00:30:00Z'],
  ],
  [
    'a skipped time an hour later',
    '30 2 * * *',
    'America/New_York',
    '2025-03-08T12:00:00Z',
    ['2025-03-09T07:30:00Z', '2025-03-10T06:30:00Z'],
  ],
  [
    'a skipped time half an hour later',
    '15 2 * * *',
    'Australia/Lord_Howe',
    '2025-10-04T00:00:00Z',
    ['2025-10-04T15:45:00Z', '2025-10-05T15:15:00Z'],
  ],
  [
    'a skipped midnight at one',
    '0 0 * * *',
    'America/Santiago',
    '2025-09-06T12:00:00Z',
    ['2025-09-07T04:00:00Z', '2025-09-08T03:00:00Z'],
  ],
  [
    'once when a skipped time meets another',
    '30 2,3 * * *',
    'Europe/Berlin',
    '2025-03-29T12:00:00Z',
    ['2025-03-30T01:30:00Z', '2025-03-31T00:30:00Z'],
  ],
  [
    'all runs of a skipped hour',
    '*/20 2 * * *',
    'Europe/Berlin',
    '2025-03-29T12:00:00Z',
    [
      '2025-03-30T01:00:00Z',
      '2025-03-30T01:20:00Z',
      '2025-03-30T01:40:00Z',
      '2025-03-31T00:00:00Z',
    ],
  ],
  [
    'skipped times among those after them',
    '0,50 2,3 * * *',
    'Australia/Lord_Howe',
    '2025-10-04T15:00:00Z',
    [
      '2025-10-04T15:30:00Z',
      '2025-10-04T15:50:00Z',
      '2025-10-04T16:00:00Z',
      '2025-10-04T16:50:00Z',
      '2025-10-05T15:00:00Z',
    ],
  ],
  [
    'a time after the gap before one that is moved behind it',
    '10,35 2 * * *',
    'Australia/Lord_Howe',
    '2025-10-04T15:00:00Z',
    ['2025-10-04T15:35:00Z', '2025-10-04T15:40:00Z', '2025-10-05T15:10:00Z'],
  ],
  [
    'every hour once',
    '0 * * * *',
    'Europe/Berlin',
    '2025-03-29T23:30:00Z',
    ['2025-03-30T00:00:00Z', '2025-03-30T01:00:00Z', '2025-03-30T02:00:00Z'],
  ],
  [
    'on the right day',
    '30 2 30 3 *',
    'Europe/Berlin',
    '2025-01-01T00:00:00Z',
    ['2025-03-30T01:30:00Z', '2026-03-30T00:30:00Z'],
  ],
];

const autumn: readonly Case[] = [
  [
    'a repeated time once',
    '30 2 * * *',
    'Europe/Berlin',
    '2025-10-25T12:00:00Z',
    ['2025-10-26T00:30:00Z', '2025-10-27T01:30:00Z'],
  ],
  [
    'a repeated time once',
    '30 1 * * *',
    'America/New_York',
    '2025-11-01T12:00:00Z',
    ['2025-11-02T05:30:00Z', '2025-11-03T06:30:00Z'],
  ],
  [
    'a repeated time once',
    '45 1 * * *',
    'Australia/Lord_Howe',
    '2026-04-04T00:00:00Z',
    ['2026-04-04T14:45:00Z', '2026-04-05T15:15:00Z'],
  ],
  [
    'several times of some hours in the repeated hour too',
    '*/20 0-22 * * *',
    'Europe/Berlin',
    '2025-10-26T00:20:00Z',
    [
      '2025-10-26T00:40:00Z',
      '2025-10-26T01:00:00Z',
      '2025-10-26T01:20:00Z',
      '2025-10-26T01:40:00Z',
      '2025-10-26T02:00:00Z',
    ],
  ],
  [
    'several times of one hour in the repeated hour too',
    '0,30 2 * * *',
    'Europe/Berlin',
    '2025-10-25T23:59:00Z',
    [
      '2025-10-26T00:00:00Z',
      '2025-10-26T00:30:00Z',
      '2025-10-26T01:00:00Z',
      '2025-10-26T01:30:00Z',
      '2025-10-27T01:00:00Z',
    ],
  ],
  [
    'one of two times of day in the repeated half hour too',
    '45 1,13 * * *',
    'Australia/Lord_Howe',
    '2026-04-04T14:00:00Z',
    ['2026-04-04T14:45:00Z', '2026-04-04T15:15:00Z', '2026-04-05T03:15:00Z'],
  ],
  [
    'what was asked for in the repeated hour only after it',
    '30 2 * * *',
    'Europe/Berlin',
    '2025-10-26T01:10:00Z',
    ['2025-10-27T01:30:00Z'],
  ],
  [
    'on the evening that comes twice once',
    '30 23 * * *',
    'America/Santiago',
    '2026-04-04T12:00:00Z',
    ['2026-04-05T02:30:00Z', '2026-04-06T03:30:00Z'],
  ],
  [
    'hour * in the repeated hour too',
    '30 * * * *',
    'Europe/Berlin',
    '2025-10-25T23:45:00Z',
    ['2025-10-26T00:30:00Z', '2025-10-26T01:30:00Z', '2025-10-26T02:30:00Z'],
  ],
  [
    'hour 0-23 in the repeated hour too',
    '30 0-23 * * *',
    'Europe/Berlin',
    '2025-10-25T23:45:00Z',
    ['2025-10-26T00:30:00Z', '2025-10-26T01:30:00Z'],
  ],
  [
    'hour * in the repeated half hour too',
    '45 * * * *',
    'Australia/Lord_Howe',
    '2026-04-04T14:00:00Z',
    ['2026-04-04T14:45:00Z', '2026-04-04T15:15:00Z', '2026-04-04T16:15:00Z'],
  ],
  [
    'hour * of a day that repeats its last hour',
    '30 * * * 6',
    'America/Santiago',
    '2026-04-05T02:00:00Z',
    ['2026-04-05T02:30:00Z', '2026-04-05T03:30:00Z', '2026-04-11T04:30:00Z'],
  ],
];

describe('a schedule when clocks go forward', () => {
  it.each(spring)('runs %s: %j in %s after %s', (_, expression, zone, from, runs) => {
    expect(runsAfter(parseSchedule(expression, zone), from, runs.length)).toEqual(runs);
  });
});

describe('a schedule when clocks go back', () => {
  it.each(autumn)('runs %s: %j in %s after %s', (_, expression, zone, from, runs) => {
    expect(runsAfter(parseSchedule(expression, zone), from, runs.length)).toEqual(runs);
  });
});

it('around a change of clocks a schedule runs when the clocks of its zone show its times', () => {
  fc.assert(
    fc.property(timeFields, dayFields, fc.constantFrom(...CHANGES), (times, days, change) => {
      const [zone, at] = change;
      const from = Date.parse(at) - 3 * HOUR;
      const until = Date.parse(at) + 3 * HOUR;
      const schedule = parseSchedule(`${times} ${days}`, zone);
      const runs: number[] = [];
      for (let run = schedule.nextAfter(from - 1); run < until; run = schedule.nextAfter(run)) {
        runs.push(run);
      }
      expect(runs).toEqual(shownRuns(times, days, { zone, from, until }));
    }),
    { numRuns: 100 },
  );
});

it.each([
  ['Europe/Berlin', '2025-03-30T00:00:00Z'],
  ['Europe/Berlin', '2025-10-26T00:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T14:00:00Z'],
  ['Australia/Lord_Howe', '2025-10-04T14:30:00Z'],
  ['Asia/Kathmandu', '2025-10-04T14:30:00Z'],
])('a schedule with hour * runs every 10 minutes in %s around %s', (zone, from) => {
  const schedule = parseSchedule('*/10 * * * *', zone);
  let at = schedule.nextAfter(Date.parse(from) - 1);
  for (let run = 0; run < 24; run += 1) {
    const next = schedule.nextAfter(at);
    expect(next - at).toBe(600_000);
    at = next;
  }
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Moments at which clocks change. */
const CHANGES = [
  ['Europe/Berlin', '2025-03-30T01:00:00Z'],
  ['Europe/Berlin', '2025-10-26T01:00:00Z'],
  ['Europe/Berlin', '2032-10-31T01:00:00Z'],
  ['America/New_York', '2026-03-08T07:00:00Z'],
  ['America/New_York', '2026-11-01T06:00:00Z'],
  ['America/St_Johns', '2027-11-07T04:30:00Z'],
  ['America/Santiago', '2025-09-07T04:00:00Z'],
  ['America/Santiago', '2026-04-05T03:00:00Z'],
  ['Africa/Casablanca', '2026-02-15T02:00:00Z'],
  ['Australia/Lord_Howe', '2025-10-04T15:30:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
  ['Australia/Lord_Howe', '2031-04-05T15:00:00Z'],
] as const;

/** Reads the clocks of the zone minute by minute, and asks node-cron which of the times match. */
function shownRuns(
  times: string,
  days: string,
  { zone, from, until }: { readonly zone: string; readonly from: number; readonly until: number },
): readonly number[] {
  const isMatch = matcher(`${times} ${days}`);
  const isTime = matcher(`${times} * * *`);
  const timesOfDay = Array.from({ length: 24 * 60 }, (_, minute) => isTime(minute * MINUTE));
  const isDaily = timesOfDay.filter(Boolean).length === 1;
  const clock = new Intl.DateTimeFormat('sv', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  const shown = (at: number) => Date.parse(`${clock.format(at).replace(' ', 'T')}Z`);
  const runs = new Set<number>();
  const seen = new Set<number>();
  for (let at = from; at < until; at += MINUTE) {
    const local = shown(at);
    if (isMatch(local) && !(isDaily && seen.has(local))) runs.add(at);
    seen.add(local);
    // Times that the clocks skip come as late as if they had not been changed.
    const before = shown(at - MINUTE) + MINUTE;
    for (let skipped = before; skipped < local; skipped += MINUTE) {
      if (isMatch(skipped)) runs.add(at + skipped - before);
    }
  }
  return [...runs].toSorted((a, b) => a - b);
}

function matcher(expression: string): (utc: number) => boolean {
  const task = createTask(expression, () => undefined, { timezone: 'UTC' });
  void task.destroy();
  return (utc) => task.match(new Date(utc));
}

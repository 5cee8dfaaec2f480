import * as fc from 'fast-check';
import { createTask } from 'node-cron';
import { expect, it } from 'vitest';
import { parseSchedule } from '../../../src/schedule/cron.ts';
import { dayFields, timeFields } from './arbitraries.ts';
import { runsAfter } from './runs.ts';

/** What runs, expression, zone, start and runs in UTC. */
const CASES = `
a skipped time an hour later | 30 2 * * * | Europe/Berlin | 2025-03-29T12:00 | 2025-03-30T01:30, 2025-03-31T00:30
a skipped time half an hour later | 15 2 * * * | Australia/Lord_Howe | 2025-10-04T00:00 | 2025-10-04T15:45, 2025-10-05T15:15
a skipped midnight at one | 0 0 * * * | America/Santiago | 2025-09-06T12:00 | 2025-09-07T04:00, 2025-09-08T03:00
once when a skipped time meets another | 30 2,3 * * * | Europe/Berlin | 2025-03-29T12:00 | 2025-03-30T01:30, 2025-03-31T00:30
a time after the gap before one that is moved behind it | 10,35 2 * * * | Australia/Lord_Howe | 2025-10-04T15:00 | 2025-10-04T15:35, 2025-10-04T15:40, 2025-10-05T15:10
on the right day | 30 2 30 3 * | Europe/Berlin | 2025-01-01T00:00 | 2025-03-30T01:30, 2026-03-30T00:30
a repeated time once | 30 2 * * * | Europe/Berlin | 2025-10-25T12:00 | 2025-10-26T00:30, 2025-10-27T01:30
several times in the repeated hour too | 0,30 2 * * * | Europe/Berlin | 2025-10-25T23:59 | 2025-10-26T00:00, 2025-10-26T00:30, 2025-10-26T01:00, 2025-10-26T01:30, 2025-10-27T01:00
one of two times of day in the repeated half hour too | 45 1,13 * * * | Australia/Lord_Howe | 2026-04-04T14:00 | 2026-04-04T14:45, 2026-04-04T15:15, 2026-04-05T03:15
what was asked for in the repeated hour only after it | 30 2 * * * | Europe/Berlin | 2025-10-26T01:10 | 2025-10-27T01:30
on the evening that comes twice once | 30 23 * * * | America/Santiago | 2026-04-04T12:00 | 2026-04-05T02:30, 2026-04-06T03:30
hour * in the repeated hour too | 30 * * * * | Europe/Berlin | 2025-10-25T23:45 | 2025-10-26T00:30, 2025-10-26T01:30, 2025-10-26T02:30`;

it.each(CASES.trim().split('\n'))('a schedule runs %s', (text) => {
  const [, expression = '', zone = '', from = '', runs = ''] = text.split(' | ');
  const expected = runs.split(', ').map((run) => `${run}:00Z`);
  const schedule = parseSchedule(expression, zone);
  expect(runsAfter(schedule, `${from}:00Z`, expected.length)).toEqual(expected);
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
    { numRuns: 120 },
  );
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
  ['Asia/Gaza', '2026-03-28T00:00:00Z'],
  ['Asia/Gaza', '2026-10-23T23:00:00Z'],
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
  const isDaily = isOnceADay(times);
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

function isOnceADay(times: string): boolean {
  const [minutes = '', hours = ''] = times.split(' ');
  const isMinute = matcher(`${minutes} 0 * * *`);
  const isHour = matcher(`0 ${hours} * * *`);
  const count = (length: number, isOne: (n: number) => boolean) =>
    Array.from({ length }, (_, n) => isOne(n)).filter(Boolean).length;
  return count(60, (n) => isMinute(n * MINUTE)) * count(24, (n) => isHour(n * HOUR)) === 1;
}

function matcher(expression: string): (utc: number) => boolean {
  const task = createTask(expression, () => undefined, { timezone: 'UTC' });
  void task.destroy();
  return (utc) => task.match(new Date(utc));
}

import type { Scenario } from './scenario.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const YEAR = 365 * 24 * HOUR;

/** Change, time zone, and schedules of a local time a day that is skipped, repeated or next to the change. */
const CHANGES = [
  ['2026-03-29T01:00:00Z', 'Europe/Berlin', ['30 2 * * *', '0 3 * * *']],
  ['2026-11-01T06:00:00Z', 'America/New_York', ['30 1 * * *', '0 2 * * *']],
  ['2026-10-03T15:30:00Z', 'Australia/Lord_Howe', ['15 2 * * *', '0 3 * * *']],
  ['2026-10-25T01:00:00Z', 'Europe/Berlin', ['30 2 * * *', '0 3 * * *']],
  ['2026-03-08T07:00:00Z', 'America/New_York', ['30 2 * * *', '0 3 * * *']],
  ['2026-04-04T15:00:00Z', 'Australia/Lord_Howe', ['45 1 * * *', '30 2 * * *']],
] as const;
const AROUND_CHANGE = 1.25 * HOUR;

export const RHYTHMS = { '*/10 * * * * *': 10 * SECOND, '0 */15 * * * *': 15 * MINUTE } as const;

/** Returns scenarios of changes; `once` has the ids that must run once. */
export function daylightSavings(
  changes: number,
): readonly (Scenario & { readonly once: readonly string[] })[] {
  return CHANGES.slice(0, changes).map(([at, timezone, daily]) => ({
    name: `${timezone} at ${at}`,
    start: Date.parse(at) - AROUND_CHANGE + 250,
    once: daily,
    schedules: [...Object.keys(RHYTHMS), ...daily].map((schedule) => ({
      id: schedule,
      schedule,
      timezone,
    })),
    steps: [{ pass: 2 * AROUND_CHANGE }],
  }));
}

export const JUMPS = [
  ['0.4 s on', 400],
  ['0.4 s back', -400],
  ['1 s on', SECOND],
  ['1 s back', -SECOND],
  ['1 h on', HOUR],
  ['1 h back', -HOUR],
  ['1 year on', YEAR],
  ['1 year back', -YEAR],
] as const;
export const STOP = 'stopped for 10 minutes';

/** Returns each jump, and a stop, at random moments of the period. */
export function jumps(rounds: number, random: () => number): readonly Scenario[] {
  const between = () => ({ pass: 25 * SECOND + Math.floor(random() * 10 * SECOND) });
  const scenario = (name: string, step: Scenario['steps'][number]): Scenario => ({
    name,
    start: Date.parse('2026-06-01T10:00:00.250Z'),
    schedules: [{ id: '*/10 * * * * *', schedule: '*/10 * * * * *', timezone: 'UTC' }],
    steps: [between(), step, { pass: 35 * SECOND }],
  });
  return Array.from({ length: rounds }, () => [
    ...JUMPS.map(([name, jump]) => scenario(name, { jump })),
    scenario(STOP, { stop: 10 * MINUTE }),
  ]).flat();
}

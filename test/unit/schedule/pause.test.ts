import { describe, expect, it } from 'vitest';
import { lastEnd, type Maintenance, pauseAt } from '../../../src/schedule/pause.ts';

const HOUR = 3_600_000;
const at = (time: string) => Date.parse(`2026-11-${time}:00Z`);
/** Sundays at 2:00 in Berlin, which is 1:00 UTC. */
const SUNDAYS: Maintenance = {
  cron: '0 2 * * 0',
  timezone: 'Europe/Berlin',
  durationMs: 4 * HOUR,
  polls: 'stop',
};
const QUIET: Maintenance = {
  cron: '0 4 * * *',
  timezone: 'UTC',
  durationMs: 2 * HOUR,
  polls: 'continue',
};
const withTimes = (...maintenance: Maintenance[]) => ({ isPaused: false, maintenance });

describe('a project', () => {
  it('is paused by its option until that changes', () => {
    const pauses = { ...withTimes(QUIET), isPaused: true };
    expect(pauseAt(pauses, at('29T04:30'))).toEqual({ until: undefined, polls: 'stop' });
  });

  it.each([
    ['29T00:59', undefined],
    ['29T01:00', '29T05:00'],
    ['29T04:59', '29T05:00'],
    ['29T05:00', undefined],
    ['30T02:00', undefined],
  ])('in maintenance at %s is so until %s', (now, until) => {
    expect(pauseAt(withTimes(SUNDAYS), at(now))?.until).toBe(until && at(until));
  });

  it('in two kinds of maintenance is not polled until the end of the one without polls', () => {
    const both = withTimes(QUIET, SUNDAYS);
    expect(pauseAt(both, at('29T04:30'))).toEqual({ until: at('29T05:00'), polls: 'stop' });
    expect(pauseAt(both, at('29T05:30'))).toEqual({ until: at('29T06:00'), polls: 'continue' });
  });

  it('in maintenance that begins again before its end stays so, for long at most', () => {
    const daily = { ...QUIET, durationMs: 24 * HOUR };
    const { until = 0 } = pauseAt(withTimes(daily), at('29T04:30')) ?? {};
    expect(until - at('29T04:30')).toBeGreaterThan(900 * 24 * HOUR);
  });

  it.each([
    ['29T00:59', undefined],
    ['29T04:59', '29T05:00'],
    ['29T05:59', '29T05:00'],
    ['29T06:00', undefined],
  ])('was in maintenance in the hour before %s until a time', (now, end) => {
    const found = lastEnd(withTimes(SUNDAYS, QUIET), 'stop', at(now) - HOUR, at(now));
    expect(found).toBe(end && at(end));
  });

  it('was in maintenance of many short times until the end of the last one', () => {
    const minutes = { ...QUIET, cron: '* 0-17 * * *', durationMs: 60_000 };
    const [from, now] = [at('28T18:30'), at('29T18:30')];
    expect(lastEnd(withTimes(minutes), 'continue', from, now)).toBe(at('29T18:00'));
  });

  it('was in maintenance that began and ended in between', () => {
    const short = { ...SUNDAYS, cron: '0 * * * *', durationMs: 60_000 };
    expect(lastEnd(withTimes(short), 'stop', at('29T00:30'), at('29T02:30'))).toBe(at('29T02:01'));
  });
});

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import {
  bucketOf,
  dayOf,
  type DurationCount,
  middleOf,
  type Expectations,
} from '../../../src/domain/limits.ts';
import type { UnfinishedStatus } from '../../../src/domain/status.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { LearnedExpectations } from '../../../src/monitor/expectations.ts';

const DAY = 86_400_000;
const MINUTE = 60_000;
const START = 20_000 * DAY + 1000;
const TEN_MINUTES = bucketOf(10 * MINUTE);

/** Creates expectations over counts that a test can change; `asked` has the states of each read. */
function setUp(...ids: readonly string[]) {
  const clock = { ...systemClock, time: START, now: () => clock.time, monotonic: () => clock.time };
  const asked: string[][] = [];
  const stored = new Map<string, readonly DurationCount[]>();
  const projects = new Map<string, { id: string; expect: Expectations }>();
  const configure = (id: string, limits: Partial<Expectations['limits']> = {}) =>
    projects.set(id, {
      id,
      expect: { limits: { PENDING: 'auto', RUNNING: 'auto', ...limits }, maxFailureRatio: 0.2 },
    });
  for (const id of ids) configure(id);
  const intervals = new Map<string, number>();
  let failure: Error | undefined;
  let readsBefore = 0;
  const expectations = new LearnedExpectations({
    store: {
      durations: async (states, firstDay) => {
        asked.push(states.map(({ project, status }) => `${project} ${status}`));
        if (failure !== undefined && asked.length > readsBefore) throw failure;
        return states.map(({ project, status }) => {
          const counts = stored.get(`${project} ${status}`) ?? [];
          return { project, status, counts: counts.filter(({ day }) => day >= firstDay) };
        });
      },
    },
    clock,
    projects: () => projects,
    maxIntervalMs: (id) => intervals.get(id) ?? 30_000,
  });
  return {
    clock,
    asked,
    projects,
    configure,
    intervals,
    expectations,
    /** Sets the durations of a status: `count` of ten minutes on each of these days before today. */
    know: (project: string, status: UnfinishedStatus, count: number, ...daysAgo: number[]) => {
      const today = dayOf(clock.time);
      const counts = daysAgo.map((ago) => ({ day: today - ago, bucket: TEN_MINUTES, count }));
      stored.set(`${project} ${status}`, counts);
    },
    /** Fails all reads but the first `after` ones. */
    fail: (error: Error | undefined, after = 0) => {
      failure = error;
      readsBefore = after;
    },
  };
}

describe('expectations', () => {
  it('are undefined before the first refresh and for projects that are not configured', async () => {
    const { expectations } = setUp('p');
    expect(expectations.of('p')).toBeUndefined();
    await expectations.refresh();
    expect(expectations.of('q')).toBeUndefined();
    expect(expectations.of('p')).toEqual({
      PENDING: { limitMs: 60 * MINUTE, source: 'default', typicalMs: undefined },
      RUNNING: { limitMs: 240 * MINUTE, source: 'default', typicalMs: undefined },
    });
  });

  it('are learned separately for each project and status', async () => {
    const { expectations, know } = setUp('p', 'q');
    know('p', 'RUNNING', 10, 1, 3, 8);
    know('q', 'PENDING', 20, 0);
    await expectations.refresh();
    const learned = expectations.of('p')?.RUNNING;
    expect(learned?.source).toBe('learned');
    expect(learned?.limitMs).toBeGreaterThan(2 * middleOf(TEN_MINUTES));
    expect(learned?.limitMs).toBeLessThan(6 * middleOf(TEN_MINUTES));
    expect(expectations.of('p')?.PENDING.source).toBe('default');
    expect(expectations.of('q')?.PENDING.source).toBe('default');
    expect(expectations.of('q')?.PENDING.typicalMs).toBeGreaterThan(9 * MINUTE);
    expect(expectations.of('q')?.RUNNING.typicalMs).toBeUndefined();
  });

  it('follow a change of the configuration at once', async () => {
    const { expectations, know, configure, projects, asked } = setUp('p');
    know('p', 'RUNNING', 10, 1, 3, 8);
    await expectations.refresh();
    const typicalMs = expectations.of('p')?.RUNNING.typicalMs;
    configure('p', { RUNNING: 5000, PENDING: 'off' });
    expect(expectations.of('p')).toEqual({
      PENDING: { limitMs: undefined, source: 'off', typicalMs: undefined },
      RUNNING: { limitMs: 5000, source: 'configured', typicalMs },
    });
    projects.delete('p');
    expect(expectations.of('p')).toBeUndefined();
    await expectations.refresh();
    configure('p');
    expect(expectations.of('p')).toBeUndefined();
    expect(asked).toEqual([['p PENDING', 'p RUNNING']]);
  });

  it('are read again each day, after another schedule, and every 5 minutes without a typical time', async () => {
    const { expectations, know, clock, intervals, asked } = setUp('p');
    know('p', 'RUNNING', 10, 1, 3, 8);
    know('p', 'PENDING', 19, 0);
    await expectations.refresh();
    clock.time += 5 * MINUTE - 1;
    await expectations.refresh();
    know('p', 'PENDING', 20, 0);
    clock.time += 1;
    await Promise.all([expectations.refresh(), expectations.refresh()]);
    clock.time += 5 * MINUTE;
    await expectations.refresh();
    clock.time += DAY;
    await expectations.refresh();
    intervals.set('p', 3_600_000);
    await expectations.refresh();
    const both = ['p PENDING', 'p RUNNING'];
    expect(asked).toEqual([both, ['p PENDING'], both, both]);
    expect(expectations.of('p')?.RUNNING.limitMs).toBeGreaterThanOrEqual(2 * 3_600_000 + MINUTE);
  });

  it('are available for a project added during a refresh after the next refresh', async () => {
    const { expectations, configure } = setUp('p');
    const running = expectations.refresh();
    configure('q');
    await expectations.refresh();
    await running;
    expect(expectations.of('q')?.PENDING.source).toBe('default');
  });

  it.each([
    ['first', 0, undefined, [10, 10, 4]],
    ['second', 1, 'default', [10, 4]],
  ])(
    'are read in batches of 10 statuses, again from a failed %s batch on',
    async (_, read, source, batches) => {
      const { expectations, asked, fail } = setUp(
        ...Array.from({ length: 12 }, (_project, index) => `p${index}`),
      );
      fail(new StoreError('io', 'no disk'), read);
      await expect(expectations.refresh()).rejects.toThrow('no disk');
      expect(expectations.of('p0')?.PENDING.source).toBe(source);
      fail(undefined);
      asked.length = 0;
      await expectations.refresh();
      expect(asked.map(({ length }) => length)).toEqual(batches);
      expect(expectations.of('p11')?.PENDING.source).toBe('default');
    },
  );
});

import { describe, expect, it } from 'vitest';
import { bucketOf, middleOf, type DurationCount, learn } from '../../../src/domain/limits.ts';
import type { UnfinishedStatus } from '../../../src/domain/status.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TODAY = 20_000;
/** Maximum relative error of a bucket. */
const BUCKET = 0.075;

interface Days {
  /** Longest duration of each day, the latest one being yesterday's; undefined on a day without durations. */
  readonly longest: readonly (number | undefined)[];
  /** Number of durations a day. */
  readonly each?: number;
}

/** Returns counts of one longest duration on each day, and of others of a minute. */
function countsOf({ longest, each = 20 }: Days): readonly DurationCount[] {
  return longest.flatMap((duration, index) => {
    if (duration === undefined) return [];
    const day = TODAY - longest.length + index;
    const others = { day, bucket: bucketOf(MINUTE), count: each - 1 };
    return [{ day, bucket: bucketOf(duration), count: 1 }, ...(each > 1 ? [others] : [])];
  });
}

function limitOf(
  counts: readonly DurationCount[],
  {
    now = TODAY * DAY,
    maxIntervalMs = 30 * SECOND,
    status = 'RUNNING',
  }: { now?: number; maxIntervalMs?: number; status?: UnfinishedStatus } = {},
): number | undefined {
  const { limitMs, source } = learn(counts, { status, now, maxIntervalMs });
  return source === 'learned' ? limitMs : undefined;
}

function days(count: number, duration: number | undefined): (number | undefined)[] {
  return Array<number | undefined>(count).fill(duration);
}

describe('the learned limit', () => {
  it('is two and a half times the third-longest of the days’ longest durations', () => {
    const longest = [40 * MINUTE, 30 * MINUTE, 20 * MINUTE, ...days(27, 10 * MINUTE)];
    const limit = limitOf(countsOf({ longest }));
    expect(limit).toBeGreaterThan(50 * MINUTE * (1 - BUCKET));
    expect(limit).toBeLessThan(50 * MINUTE * (1 + BUCKET));
    expect(limit).toBe(Math.round((2.5 * middleOf(bucketOf(20 * MINUTE))) / SECOND) * SECOND);
  });

  it('does not depend on the order of the counts', () => {
    const counts = countsOf({ longest: [HOUR, 50 * MINUTE, 20 * MINUTE, ...days(20, MINUTE)] });
    expect(limitOf(counts.toReversed())).toBe(limitOf(counts));
  });

  it.each([
    ['19 durations', { longest: days(19, MINUTE), each: 1 }, undefined],
    ['20 durations', { longest: days(20, 20 * SECOND), each: 1 }, 5 * MINUTE],
    ['2 days', { longest: [MINUTE, ...days(8, undefined), MINUTE], each: 50 }, undefined],
    ['3 days', { longest: [MINUTE, ...days(7, undefined), MINUTE, MINUTE], each: 50 }, 5 * MINUTE],
    ['a first day six days ago', { longest: days(6, MINUTE), each: 50 }, undefined],
    ['a first day a week ago', { longest: days(7, MINUTE), each: 50 }, 5 * MINUTE],
  ])('needs 20 durations on 3 days, the first a week ago: %s', (_, known, limit) => {
    expect(limitOf(countsOf(known))).toBe(limit);
  });

  it('is longer while fewer than 30 days are known', () => {
    const [week, month] = [7, 30].map((count) =>
      Number(limitOf(countsOf({ longest: days(count, HOUR), each: 100 }))),
    );
    expect(Number(week) / Number(month)).toBeCloseTo(Math.cbrt(30 / 7), 2);
  });

  it('is longer while fewer than 300 durations are known', () => {
    const [few, many, more] = [3, 10, 20].map((each) =>
      Number(limitOf(countsOf({ longest: days(30, HOUR), each }))),
    );
    expect(Number(few) / Number(many)).toBeCloseTo(Math.cbrt(300 / 90), 2);
    expect(more).toBe(many);
  });

  it('counts days without durations as known ones', () => {
    const gaps = [HOUR, ...days(27, undefined), HOUR, HOUR];
    const full = limitOf(countsOf({ longest: days(30, HOUR) }));
    expect(limitOf(countsOf({ longest: gaps, each: 100 }))).toBe(full);
  });

  it('is five minutes at least', () => {
    expect(limitOf(countsOf({ longest: days(30, SECOND) }))).toBe(5 * MINUTE);
  });

  it('is twice the longest interval and a minute at least, even above the cap', () => {
    const counts = countsOf({ longest: days(30, SECOND) });
    expect(limitOf(counts, { maxIntervalMs: HOUR })).toBe(2 * HOUR + MINUTE);
    expect(limitOf(counts, { maxIntervalMs: 2 * DAY })).toBe(4 * DAY + MINUTE);
  });

  it('is twelve times the default at most', () => {
    const counts = countsOf({ longest: days(30, 40 * HOUR) });
    expect(limitOf(counts)).toBe(48 * HOUR);
    expect(limitOf(counts, { status: 'PENDING' })).toBe(12 * HOUR);
  });

  it.each([1, 2])('is not raised by %d days with hung prompts, however many', (hung) => {
    const usual = [12 * MINUTE, 11 * MINUTE, 10 * MINUTE, ...days(25, 5 * MINUTE)];
    const without = limitOf(countsOf({ longest: [...days(2, 5 * MINUTE), ...usual] }));
    const longest = [...days(hung, 45 * MINUTE), ...days(2 - hung, 5 * MINUTE), ...usual];
    const counts = countsOf({ longest }).map((count) =>
      count.bucket === bucketOf(45 * MINUTE) ? { ...count, count: 5000 } : count,
    );
    expect(limitOf(counts)).toBe(without);
  });

  it('is learned from the shortest day if hung days leave fewer than three', () => {
    const longest = [9 * HOUR, 9 * HOUR, ...days(3, undefined), HOUR, 30 * MINUTE];
    const limit = limitOf(countsOf({ longest, each: 100 }));
    const learned = 2.5 * Math.cbrt(30 / 7) * middleOf(bucketOf(30 * MINUTE));
    expect(limit).toBe(Math.round(learned / SECOND) * SECOND);
  });

  it('follows three days on which prompts took longer', () => {
    const longest = [...days(27, 10 * MINUTE), ...days(3, 2 * HOUR)];
    expect(limitOf(countsOf({ longest }))).toBe(limitOf(countsOf({ longest: days(30, 2 * HOUR) })));
  });

  it('uses the 30 days before today', () => {
    const longest = [...days(3, 2 * HOUR), ...days(27, 10 * MINUTE)];
    const counts = countsOf({ longest });
    const usual = limitOf(countsOf({ longest: days(30, 10 * MINUTE) }));
    expect(limitOf(counts)).not.toBe(usual);
    // A day later the first of the three is too old; the other two count as days with hung prompts.
    expect(
      limitOf([...counts, { day: TODAY, bucket: 0, count: 1 }], { now: (TODAY + 1) * DAY }),
    ).toBe(usual);
  });

  it('changes at midnight only', () => {
    const counts = [
      ...countsOf({ longest: days(30, 10 * MINUTE) }),
      { day: TODAY, bucket: bucketOf(HOUR), count: 1000 },
    ];
    const first = limitOf(counts);
    expect(limitOf(counts, { now: (TODAY + 1) * DAY - 1 })).toBe(first);
    expect(limitOf(countsOf({ longest: days(30, 10 * MINUTE) }))).toBe(first);
  });

  it('is capped for durations in the last bucket, too', () => {
    const counts = countsOf({ longest: days(30, 400 * DAY) });
    expect(limitOf(counts)).toBe(48 * HOUR);
  });
});

describe('the typical duration', () => {
  const typicalOf = (counts: readonly DurationCount[]) =>
    learn(counts, { status: 'RUNNING', now: TODAY * DAY + HOUR, maxIntervalMs: 0 }).typicalMs;

  it('is the median of the 30 days before today, within 7.5 %', () => {
    const counts = [
      { day: TODAY - 31, bucket: bucketOf(HOUR), count: 1000 },
      { day: TODAY - 30, bucket: bucketOf(20 * MINUTE), count: 6 },
      { day: TODAY - 1, bucket: bucketOf(10 * MINUTE), count: 10 },
      { day: TODAY - 1, bucket: bucketOf(5 * MINUTE), count: 5 },
      { day: TODAY, bucket: bucketOf(HOUR), count: 1000 },
    ];
    const typical = Number(typicalOf(counts));
    expect(Math.abs(typical / (10 * MINUTE) - 1)).toBeLessThan(BUCKET);
  });

  it('includes the durations of today while the days before have fewer than 20', () => {
    const past = { day: TODAY - 1, bucket: bucketOf(MINUTE), count: 19 };
    expect(typicalOf([past])).toBeUndefined();
    const today = { day: TODAY, bucket: bucketOf(MINUTE), count: 1 };
    expect(typicalOf([past, today])).toBeGreaterThan(50 * SECOND);
    const hour = { day: TODAY, bucket: bucketOf(HOUR), count: 100 };
    expect(typicalOf([past, hour])).toBeGreaterThan(50 * MINUTE);
    expect(typicalOf([{ ...past, count: 20 }, hour])).toBeLessThan(2 * MINUTE);
  });

  it('is undefined without durations', () => {
    expect(typicalOf([])).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { bucketOf, countDurations, dayOf, middleOf } from '../../../src/domain/limits.ts';
import type { Origin, Status } from '../../../src/domain/status.ts';
import type { Transition } from '../../../src/domain/transition.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const AT = 20_000 * DAY + 60 * MINUTE;

function transition(
  from: Origin,
  heldMs: number | undefined,
  to: Status = 'COMPLETED',
): Transition {
  return { id: 'p', name: undefined, from, to, heldMs };
}

describe('bucketOf', () => {
  it('returns the first bucket for durations up to a second', () => {
    expect([0, 1, 1000].map((ms) => bucketOf(ms))).toEqual([0, 0, 0]);
    expect(bucketOf(1001)).toBe(1);
  });

  it('has buckets that grow by 15 %, with their middle within 7.5 % of each duration', () => {
    for (let ms = 1001; ms < 8 * DAY; ms = Math.ceil(ms * 1.013)) {
      const bucket = bucketOf(ms);
      expect(Math.abs(middleOf(bucket) / ms - 1)).toBeLessThan(0.075);
      expect(bucketOf(ms * 1.15) - bucket).toBe(1);
    }
  });

  it('returns bucket 98 for all durations of about ten days or longer', () => {
    expect(bucketOf(11 * DAY)).toBe(98);
    expect(bucketOf(Number.MAX_SAFE_INTEGER)).toBe(98);
  });
});

describe('dayOf', () => {
  it('is the day in UTC', () => {
    expect(dayOf(Date.UTC(1970, 0, 2) - 1)).toBe(0);
    expect(dayOf(Date.UTC(1970, 0, 2))).toBe(1);
  });
});

describe('countDurations', () => {
  it('counts stays by status and bucket, on the day of the poll that ends them', () => {
    const transitions = [
      transition('RUNNING', 20 * MINUTE),
      transition('RUNNING', 20 * MINUTE, 'FAILED'),
      transition('RUNNING', MINUTE, 'PENDING'),
      transition('PENDING', MINUTE, 'RUNNING'),
    ];
    expect(countDurations(transitions, AT, 0)).toEqual([
      { status: 'RUNNING', day: 20_000, bucket: bucketOf(20 * MINUTE), count: 2 },
      { status: 'RUNNING', day: 20_000, bucket: bucketOf(MINUTE), count: 1 },
      { status: 'PENDING', day: 20_000, bucket: bucketOf(MINUTE), count: 1 },
    ]);
  });

  it('counts a stay on the day on which it ends', () => {
    const added = countDurations([transition('RUNNING', DAY)], AT, 0);
    expect(added.map(({ day }) => day)).toEqual([20_000]);
  });

  it('leaves out stays that began before steadySince', () => {
    const held = 20 * MINUTE;
    const count = (steadySince: number): number =>
      countDurations([transition('RUNNING', held)], AT, steadySince).length;
    expect(count(AT - held)).toBe(1);
    expect(count(AT - held + 1)).toBe(0);
    expect(count(AT)).toBe(0);
  });

  it.each<Origin>(['UNKNOWN', 'COMPLETED', 'FAILED', 'NONE'])('leaves out stays in %s', (from) => {
    const transitions = [transition(from, MINUTE, 'RUNNING')];
    expect(countDurations(transitions, AT, 0)).toEqual([]);
  });

  it('leaves out stays of 0 ms, which result from a clock that was set back', () => {
    expect(countDurations([transition('RUNNING', 0)], AT, 0)).toEqual([]);
  });

  it('leaves out new prompts, which no poll found before', () => {
    const transitions = [transition('NEW', undefined, 'RUNNING')];
    expect(countDurations(transitions, AT, 0)).toEqual([]);
  });

  it('leaves out stays of prompts that were missing from listings', () => {
    const missing = { ...transition('RUNNING', 20 * MINUTE), wasMissing: true };
    expect(countDurations([missing], AT)).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import {
  afterFailedTry,
  afterRemoval,
  type FailedTry,
  type Tries,
} from '../../../src/domain/failure.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const untried: Tries = { count: 0, useless: 0, firstAt: undefined, lastAt: undefined, nextAt: 0 };
const useless: FailedTry = { useless: true, reason: 'not_found' };
const down: FailedTry = { useless: false, retryAfterMs: undefined };

/** Tries whenever the next try is due. Returns the times of the tries and the settlement. */
function tryUntilSettled(outcome: (index: number) => FailedTry) {
  const at: number[] = [];
  let tries = untried;
  let now = 0;
  for (;;) {
    at.push(now);
    const next = afterFailedTry(tries, outcome(at.length - 1), now);
    if ('settlement' in next) return { at, settlement: next.settlement };
    tries = next.tries;
    now = tries.nextAt;
  }
}

describe('a useless answer', () => {
  it('settles the failure after 3 tries over 5 minutes', () => {
    const { at, settlement } = tryUntilSettled(() => useless);

    expect(at).toHaveLength(3);
    expect(at[2]).toBe(5 * MINUTE);
    expect(settlement).toEqual({ reason: 'not_found' });
  });

  it('gives the reason of the last one', () => {
    const { settlement } = tryUntilSettled((index) =>
      index === 2 ? { useless: true, reason: 'no_error_info' } : useless,
    );

    expect(settlement).toEqual({ reason: 'no_error_info' });
  });

  it('settles the failure after three of its kind, not counting tries while the service was down', () => {
    const { at } = tryUntilSettled((index) => (index < 4 ? down : useless));

    expect(at).toHaveLength(7);
  });
});

describe('a service that is down', () => {
  it('is retried within 30 seconds, then at growing intervals, and given up after 24 hours', () => {
    const { at, settlement } = tryUntilSettled(() => down);
    const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));

    expect(gaps[0]).toBeLessThanOrEqual(30 * SECOND);
    expect(gaps.toSorted((a, b) => a - b)).toEqual(gaps);
    expect(at.at(-1)).toBeGreaterThanOrEqual(24 * HOUR);
    expect(at.at(-2)).toBeLessThan(24 * HOUR);
    expect(settlement).toEqual({ reason: 'unavailable' });
  });

  it('is not retried before its Retry-After', () => {
    const next = afterFailedTry(untried, { useless: false, retryAfterMs: 4 * MINUTE }, 1000);

    expect(next).toMatchObject({ tries: { nextAt: 1000 + 4 * MINUTE, lastAt: 1000 } });
  });
});

it('a clock that was set back does not delay the next try', () => {
  const tries: Tries = { count: 1, useless: 1, firstAt: HOUR, lastAt: HOUR, nextAt: HOUR + SECOND };

  const next = afterFailedTry(tries, useless, 10 * SECOND);

  expect(next).toMatchObject({ tries: { firstAt: 10 * SECOND, nextAt: 10 * SECOND + 5 * MINUTE } });
});

it('a failure is given up 5 minutes after its project has left the configuration', () => {
  expect(afterRemoval(untried, 1000, 1000 + 5 * MINUTE - 1)).toEqual({
    tries: { ...untried, lastAt: 5 * MINUTE + 999, nextAt: 5 * MINUTE + 999 + 15 * SECOND },
  });
  expect(afterRemoval(untried, 1000, 1000 + 5 * MINUTE)).toEqual({
    settlement: { reason: 'project_removed' },
  });
});

import { expect, it } from 'vitest';
import { watchLeases } from '../../../../src/store/postgres/ownership/lease-watch.ts';

/** Returns a function that reads the lease of a worker and returns whether it is over. */
function watchLease(): (at: number, expiresUs: number, remainingMs: number) => boolean {
  const clock = { time: 0, monotonic: () => clock.time };
  const over = watchLeases(clock);
  return (at, expires_us, remaining_ms) => {
    clock.time = at;
    return over([{ worker: 'w', expires_us, remaining_ms }]).length > 0;
  };
}

it('a lease gains no time without a renewal, even if the clock of the database is set back', () => {
  const isOver = watchLease();
  expect(isOver(0, 1, 10_000)).toBe(false);
  // The clock was set back.
  expect(isOver(2500, 1, 60_000)).toBe(false);
  expect(isOver(9999, 1, 50_000)).toBe(false);
  expect(isOver(10_000, 1, 50_000)).toBe(true);
  // It was renewed meanwhile.
  expect(isOver(12_500, 2, 10_000)).toBe(false);
  // The clock was set forward.
  expect(isOver(13_000, 2, -1)).toBe(true);
});

it('a lease with an impossibly long remaining time expires after 150 s without a renewal', () => {
  const isOver = watchLease();
  // The clock was set back by two hours before this worker read the lease for the first time.
  expect(isOver(0, 1, 7_200_000)).toBe(false);
  expect(isOver(149_999, 1, 7_050_001)).toBe(false);
  expect(isOver(150_000, 1, 7_050_000)).toBe(true);
  // Its worker lives.
  expect(isOver(153_000, 2, 300_000)).toBe(false);
  expect(isOver(452_000, 2, 1000)).toBe(false);
  expect(isOver(453_000, 2, 0)).toBe(true);
});

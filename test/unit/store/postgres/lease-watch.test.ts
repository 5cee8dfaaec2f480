import { expect, it } from 'vitest';
import { watchLeases } from '../../../../src/store/postgres/ownership/lease-watch.ts';

it('a lease lasts as long as it was good for when it was first read, whatever the database says later', () => {
  const clock = { time: 0, monotonic: () => clock.time };
  const over = watchLeases(clock);
  const read = (at: number, expires_us: number, remaining_ms: number) => {
    clock.time = at;
    return over([{ worker: 'w', expires_us, remaining_ms }]).map(({ worker }) => worker);
  };

  expect(read(0, 1, 10_000)).toEqual([]);
  // The clock was set back.
  expect(read(2500, 1, 60_000)).toEqual([]);
  expect(read(9999, 1, 50_000)).toEqual([]);
  expect(read(10_000, 1, 50_000)).toEqual(['w']);
  // It was renewed meanwhile.
  expect(read(12_500, 2, 10_000)).toEqual([]);
  // The clock was set forward.
  expect(read(13_000, 2, -1)).toEqual(['w']);
});

it('a lease with more time than any can have is over once a living worker would have renewed it', () => {
  const clock = { time: 0, monotonic: () => clock.time };
  const over = watchLeases(clock);
  const read = (at: number, expires_us: number, remaining_ms: number) => {
    clock.time = at;
    return over([{ worker: 'w', expires_us, remaining_ms }]).map(({ worker }) => worker);
  };

  // The clock was set back by two hours before this worker read the lease for the first time.
  expect(read(0, 1, 7_200_000)).toEqual([]);
  expect(read(149_999, 1, 7_050_001)).toEqual([]);
  expect(read(150_000, 1, 7_050_000)).toEqual(['w']);
  // Its worker lives.
  expect(read(153_000, 2, 300_000)).toEqual([]);
  expect(read(452_000, 2, 1000)).toEqual([]);
  expect(read(453_000, 2, 0)).toEqual(['w']);
});

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

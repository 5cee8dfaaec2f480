import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createHeartbeat, type Heartbeat } from '../../../src/coordination/heartbeat.ts';
import { systemClock } from '../../../src/app/clock.ts';

let beats: number[];
let intervalMs: number;
let heartbeat: Heartbeat;

beforeEach(() => {
  vi.useFakeTimers();
  beats = [];
  intervalMs = 10_000;
  const start = systemClock.monotonic();
  const beat = async () => void beats.push(Math.round(systemClock.monotonic() - start));
  heartbeat = createHeartbeat({ beat, intervalMs: () => intervalMs, clock: systemClock });
});

afterEach(() => {
  heartbeat.stop();
  vi.useRealTimers();
});

it('a beat comes sooner if it is scheduled again after a shorter interval', async () => {
  heartbeat.schedule();
  await vi.advanceTimersByTimeAsync(500);
  intervalMs = 1000;
  heartbeat.schedule();
  await vi.advanceTimersByTimeAsync(2000);
  expect(beats).toEqual([1500, 2500]);
});

it('a beat is not put off by being scheduled again', async () => {
  heartbeat.schedule();
  await vi.advanceTimersByTimeAsync(9500);
  intervalMs = 1000;
  for (let n = 0; n < 5; n += 1) {
    heartbeat.schedule();
    await vi.advanceTimersByTimeAsync(500);
  }
  expect(beats).toEqual([10_000, 11_000, 12_000]);
});

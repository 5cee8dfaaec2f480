import { expect, it, vi } from 'vitest';
import type { Engine } from '../../../src/app/engine.ts';
import { learnFirst } from '../../../src/app/maintenance.ts';
import { systemClock } from '../../../src/app/clock.ts';
import { StoreError } from '../../../src/monitor/errors.ts';

/** Returns whether the first scrapes still wait for the limits after this time. */
async function isWaiting(refresh: () => Promise<void>, afterMs: number): Promise<boolean> {
  vi.useFakeTimers();
  try {
    const onLearned = vi.fn<() => void>();
    void learnFirst({ expectations: { refresh } } as unknown as Engine, systemClock).then(
      onLearned,
    );
    await vi.advanceTimersByTimeAsync(afterMs);
    return onLearned.mock.calls.length === 0;
  } finally {
    vi.useRealTimers();
  }
}

it.each([
  ['until the limits are learned', () => Promise.resolve(), 0, false],
  ['while the limits are learned', () => new Promise<void>(() => {}), 4999, true],
  ['no longer than five seconds', () => new Promise<void>(() => {}), 5000, false],
  ['no longer when the store fails', () => Promise.reject(new StoreError('io', 'gone')), 0, false],
])('the first scrapes wait %s', async (_, refresh, afterMs, waits) => {
  expect(await isWaiting(refresh, afterMs)).toBe(waits);
});

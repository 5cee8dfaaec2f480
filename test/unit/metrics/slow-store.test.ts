import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { StoreSnapshot } from '../../../src/monitor/ports/store.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { START, setUp, snapshotOf, stored } from './setup.ts';

const SERIES = 'evalwatch_project_configured_timestamp_seconds{project="alpha"}';
const CLOCK = { ...systemClock, now: () => START, monotonic: () => performance.now() };

describe('a store that is too slow for scrapes', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Delays snapshots by `delayMs`, which a test may change. */
  function setUpSlow(delayMs: number) {
    const store = { delayMs, asked: 0 };
    const snapshot = async (): Promise<StoreSnapshot> => {
      store.asked += 1;
      const { promise, resolve } = Promise.withResolvers<void>();
      if (store.delayMs !== Infinity) setTimeout(resolve, store.delayMs);
      await promise;
      return snapshotOf([stored('alpha')]);
    };
    const size = async () => ({ database: 4096, wal: 0 });
    const given = setUp({ store: { snapshot, size }, clock: CLOCK });
    given.configure('alpha');
    /** Scrapes, which takes at most 2 s. */
    const scrape = async () => {
      const scraping = given.scrape();
      await vi.advanceTimersByTimeAsync(2000);
      return await scraping;
    };
    /** Waits until `ms` after the start of the last scrape. */
    const waitUntil = (ms: number) => vi.advanceTimersByTimeAsync(ms - 2000);
    return { ...given, scrape, store, waitUntil };
  }

  it('delays them by 2 s, omits only its own series, and gets no second read meanwhile', async () => {
    const { scrape, store, waitUntil } = setUpSlow(20_000);
    for (let times = 0; times < 2; times += 1) {
      const samples = await scrape();
      expect(samples.get('evalwatch_polls_total{project="alpha"}')).toBe(0);
      expect(samples.has(SERIES)).toBe(false);
      expect(samples.get('evalwatch_store_database_bytes')).toBe(4096);
    }
    expect(store.asked).toBe(1);
    await waitUntil(30_000);
    store.delayMs = 0;
    expect((await scrape()).has(SERIES)).toBe(true);
    expect(store.asked).toBe(2);
  });

  it('is reported from the third slow scrape in a row on, also if it answers each of them too late', async () => {
    for (const delayMs of [3000, Infinity]) {
      const { scrape, emitted, waitUntil } = setUpSlow(delayMs);
      const told: number[] = [];
      for (let times = 0; times < 4; times += 1) {
        await scrape();
        told.push(emitted.length);
        await waitUntil(15_000);
      }
      expect(told).toEqual([0, 0, 1, 2]);
      expect(emitted[0]).toMatchObject({ type: 'store.commit_failed', reason: 'io' });
    }
  });

  it('is not reported if every second scrape is answered in time', async () => {
    const { scrape, emitted, store, waitUntil } = setUpSlow(0);
    for (let times = 0; times < 20; times += 1) {
      store.delayMs = times % 2 === 0 ? 3000 : 0;
      expect((await scrape()).has(SERIES)).toBe(times % 2 === 1);
      await waitUntil(20_000);
    }
    expect(emitted).toEqual([]);
  });

  it('is reported if a read fails after its scrape has timed out', async () => {
    const error = new StoreError('io', 'gone');
    const answer = Promise.withResolvers<never>();
    const size = async () => ({ database: 4096, wal: 0 });
    const given = setUp({ store: { snapshot: () => answer.promise, size }, clock: CLOCK });
    const scraping = given.scrape();
    await vi.advanceTimersByTimeAsync(2000);
    await scraping;
    expect(given.emitted).toEqual([]);
    answer.reject(error);
    await vi.advanceTimersByTimeAsync(0);
    expect(given.emitted).toEqual([{ type: 'store.commit_failed', reason: 'io', error }]);
  });
});

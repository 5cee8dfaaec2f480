import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { createTimeBudget } from '../../../../src/web/limits/time-budget.ts';
import { createFairQueue, type FairQueueOptions } from '../../../../src/web/limits/fair-queue.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
});

function setUp(options: Partial<FairQueueOptions> = {}) {
  const queue = createFairQueue({ maxWaiting: 100, maxWaitingPerKey: 10, ...options });
  const done: string[] = [];
  /** Works for `ms` when its turn comes. */
  async function work(
    name: string,
    ms: number,
    gone = new AbortController().signal,
  ): Promise<void> {
    using turn = await queue.waitForTurn({ client: name.charAt(0), gone });
    if (turn === undefined) {
      done.push(`${name} sent away`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, ms));
    done.push(name);
  }
  return { queue, done, work };
}

const budgetOf = (share: number, burstMs: number, maxPauseMs = 60_000) =>
  createTimeBudget({ clock: systemClock, share, burstMs, maxPauseMs });

describe('fair queue', () => {
  it('grants one turn at a time, alternating between clients', async () => {
    const { done, work } = setUp();
    const all = Promise.all(['a1', 'a2', 'a3', 'b1'].map((name) => work(name, 10)));
    await vi.advanceTimersByTimeAsync(25);
    expect(done).toEqual(['a1', 'a2']);
    await vi.advanceTimersByTimeAsync(15);
    await all;
    expect(done).toEqual(['a1', 'a2', 'b1', 'a3']);
  });

  it('rejects a caller if too many callers of its client wait', async () => {
    const { done, work } = setUp({ maxWaitingPerKey: 1 });
    const all = Promise.all(['a1', 'a2', 'a3', 'b1'].map((name) => work(name, 10)));
    await vi.advanceTimersByTimeAsync(30);
    await all;
    expect(done).toEqual(['a3 sent away', 'a1', 'a2', 'b1']);
  });

  it('rejects a caller that has waited for the maximum time', async () => {
    const { done, work } = setUp({ maxWaitMs: 100 });
    const all = Promise.all([work('a', 150), work('b', 1)]);
    await vi.advanceTimersByTimeAsync(100);
    expect(done).toEqual(['b sent away']);
    await vi.advanceTimersByTimeAsync(50);
    await all;
    expect(done).toEqual(['b sent away', 'a']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('skips callers whose client has disconnected', async () => {
    const { done, work } = setUp();
    const gone = new AbortController();
    const all = Promise.all([work('a', 10), work('b', 10, gone.signal), work('c', 10)]);
    gone.abort();
    await vi.advanceTimersByTimeAsync(20);
    await all;
    await work('d', 10, gone.signal);
    expect(done).toEqual(['b sent away', 'a', 'c', 'd sent away']);
  });

  it('limits the pause after a turn, however long the turn took', async () => {
    const { done, work } = setUp({ budget: budgetOf(1 / 20, 100, 500), maxWaitMs: 600 });
    const first = work('a', 10_000);
    await vi.advanceTimersByTimeAsync(10_000);
    await first;
    const next = work('b', 1);
    await vi.advanceTimersByTimeAsync(501);
    await next;
    expect(done).toEqual(['a', 'b']);
  });

  it('pauses between turns to keep its share of the time once the burst is used up', async () => {
    const { done, work } = setUp({ budget: budgetOf(0.1, 50) });
    const all = Promise.all(Array.from({ length: 7 }, (_, n) => work(`a${n}`, 10)));
    await vi.advanceTimersByTimeAsync(65);
    // The share of this time allows a part of one more turn.
    expect(done).toHaveLength(6);
    await vi.advanceTimersByTimeAsync(30);
    expect(done).toHaveLength(6);
    await vi.advanceTimersByTimeAsync(70);
    await all;
    expect(done).toHaveLength(7);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('has its full burst again after a rest', async () => {
    const { done, work } = setUp({ budget: budgetOf(0.1, 50) });
    const five = () => Promise.all(Array.from({ length: 5 }, (_, n) => work(`a${n}`, 10)));
    const first = five();
    await vi.advanceTimersByTimeAsync(50);
    await first;
    await vi.advanceTimersByTimeAsync(500);
    const second = five();
    await vi.advanceTimersByTimeAsync(50);
    await second;
    expect(done).toHaveLength(10);
  });
});

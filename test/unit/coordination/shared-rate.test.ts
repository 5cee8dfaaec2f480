import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Coordinator } from '../../../src/coordination/ports.ts';
import { SharedRate } from '../../../src/coordination/shared-rate.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { pass } from './world.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Models the request queue of all workers in the database. */
function sharedQueue(roundTripMs = 2) {
  let nextAt = 0;
  let asked = 0;
  let fails = false;
  const grant: Coordinator['grant'] = async (wanted, perSecond, withinMs) => {
    asked += 1;
    await new Promise((resolve) => {
      setTimeout(resolve, roundTripMs);
    });
    if (fails) throw new StoreError('io', 'no connection');
    const now = performance.now();
    const start = Math.max(nextAt, now);
    const spacingMs = 1000 / perSecond;
    const room = Math.floor((withinMs - (start - now)) / spacingMs);
    const count = Math.min(wanted, Math.max(room, start <= now ? 1 : 0));
    nextAt = start + count * spacingMs;
    return { count, startsInMs: start - now, spacingMs };
  };
  return {
    grant,
    asked: () => asked,
    fail: (next: boolean) => {
      fails = next;
    },
  };
}

/** Creates a worker that sends requests as soon as it may. */
function sender(
  queue: ReturnType<typeof sharedQueue>,
  perSecond: number,
  workers: () => number,
  sent: number[],
) {
  const rate = new SharedRate({
    perSecond,
    coordinator: { grant: queue.grant },
    workers,
    clock: systemClock,
    onError: (error) => {
      throw error;
    },
  });
  let waiting = 0;
  let timer: NodeJS.Timeout | undefined;
  function admit(): void {
    clearTimeout(timer);
    while (waiting > 0) {
      const delay = rate.delay(waiting);
      if (delay > 0) {
        if (Number.isFinite(delay)) timer = setTimeout(admit, Math.ceil(delay));
        return;
      }
      waiting -= 1;
      rate.take().sent();
      sent.push(performance.now());
    }
  }
  rate.onShorterDelay(admit);
  return {
    rate,
    wants: (count: number) => {
      waiting += count;
      admit();
    },
    dies: () => {
      waiting = 0;
      clearTimeout(timer);
    },
  };
}

/** Returns the maximum count in any `windowMs`. */
function mostIn(times: readonly number[], windowMs: number): number {
  const ordered = times.toSorted((a, b) => a - b);
  let from = 0;
  let most = 0;
  for (const [index, at] of ordered.entries()) {
    while ((ordered[from] ?? 0) <= at - windowMs) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

describe('a shared rate limit', () => {
  it.each([
    [0.5, 2],
    [200, 3],
    [5000, 3],
  ])(
    'of %d requests per second is fully used by %i workers and never exceeded',
    async (perSecond, count) => {
      const queue = sharedQueue();
      const sent: number[] = [];
      for (let n = 0; n < count; n += 1) {
        sender(queue, perSecond, () => count, sent).wants(1_000_000);
      }
      await pass(15_000);
      expect(mostIn(sent, 10_000)).toBeLessThanOrEqual(Math.ceil(perSecond * 10 * 1.05));
      expect(sent.length).toBeGreaterThanOrEqual(Math.floor(perSecond * 15 * 0.95));
    },
  );

  it('is never exceeded while workers join, die and send bursts', async () => {
    const queue = sharedQueue(20);
    const sent: number[] = [];
    let live = 1;
    const senders = [sender(queue, 100, () => live, sent)];
    for (let round = 0; round < 40; round += 1) {
      if (round % 5 === 2) senders.push(sender(queue, 100, () => live, sent));
      if (round % 5 === 4) senders.shift()?.dies();
      live = senders.length;
      for (const each of senders) each.wants((round * 37) % 120);
      await pass(700);
    }
    expect(mostIn(sent, 10_000)).toBeLessThanOrEqual(1050);
    expect(sent.length).toBeGreaterThan(2000);
  });

  it('needs fewer than 4 database queries a second for a worker far below it', async () => {
    const queue = sharedQueue();
    const sent: number[] = [];
    const { wants } = sender(queue, 1000, () => 3, sent);
    for (let n = 0; n < 600; n += 1) {
      wants(1);
      await pass(16);
    }
    expect(sent.length).toBe(600);
    expect(queue.asked()).toBeLessThan((4 * performance.now()) / 1000);
  });

  it('allows no request while the database fails, and resumes within 1.5 s after it recovers', async () => {
    const queue = sharedQueue();
    const sent: number[] = [];
    const { wants } = sender(queue, 100, () => 1, sent);
    queue.fail(true);
    wants(10);
    await pass(60_000);
    expect(sent).toEqual([]);
    queue.fail(false);
    await pass(1500);
    expect(sent.length).toBe(10);
  });

  it('does not keep the process alive while it waits to retry the database', async () => {
    const queue = sharedQueue();
    queue.fail(true);
    const waiting = new Set<object>();
    const timeout: typeof systemClock.timeout = (...asked) => {
      const timer = systemClock.timeout(...asked);
      waiting.add(timer);
      const unref = () => {
        waiting.delete(timer);
        return timer.unref();
      };
      return { ...timer, unref };
    };
    const rate = new SharedRate({
      perSecond: 10,
      coordinator: { grant: queue.grant },
      workers: () => 1,
      clock: { ...systemClock, timeout },
      onError: (error) => {
        throw error;
      },
    });
    rate.delay(1);
    await pass(10);
    waiting.clear();
    rate.delay(1);
    expect(vi.getTimerCount()).toBe(1);
    expect(waiting.size).toBe(0);
  });

  it('makes a cancelled permit available again', async () => {
    const queue = sharedQueue();
    const { rate } = sender(queue, 10, () => 1, []);
    rate.delay(1);
    await pass(5);
    const permit = rate.take();
    expect(rate.delay(0)).toBe(Infinity);
    permit.cancelled();
    expect(rate.delay(0)).toBe(0);
  });
});

it('places of an answer that a stopped process reads late are not used', async () => {
  let stoppedMs = 0;
  const grant = vi.fn<Coordinator['grant']>(async () => {
    if (grant.mock.calls.length === 1) stoppedMs = 60_000;
    return { count: 1, startsInMs: 0, spacingMs: 100 };
  });
  const rate = new SharedRate({
    perSecond: 10,
    coordinator: { grant },
    workers: () => 1,
    clock: { ...systemClock, monotonic: () => performance.now() + stoppedMs },
    onError: (error) => {
      throw error;
    },
  });
  expect(rate.delay(1)).toBe(Infinity);
  await pass(1);
  expect(rate.delay(1)).toBe(Infinity);
  await pass(1);
  expect(rate.delay(1)).toBe(0);
  expect(grant).toHaveBeenCalledTimes(2);
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { HealthQueue } from '../../../src/store/health-queue.ts';

const SECOND = 1000;

/** Creates a queue of numbers whose slow writes `end` ends. */
function createQueue() {
  const written: (readonly (readonly [string, number])[])[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  let isFull = false;
  let isSlow = false;
  const queue = new HealthQueue<number>(async (waiting) => {
    if (isSlow) {
      const end = Promise.withResolvers<void>();
      ends.push(end);
      await end.promise;
    }
    if (isFull) throw new StoreError('full', 'no space is left');
    written.push([...waiting]);
  }, systemClock);
  return {
    add: (project: string, health: number) => queue.add(project, health),
    drop: (project: string) => queue.drop(project),
    flush: () => queue.flush(),
    close: () => queue.close(),
    written,
    fill: () => {
      isFull = true;
    },
    free: () => {
      isFull = false;
    },
    slowDown: () => {
      isSlow = true;
    },
    /** Ends the write that is under way. */
    end: async () => {
      ends.shift()?.resolve();
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

describe('queued poll health', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('is written after 1 s in one batch, the newest of each project', async () => {
    const queue = createQueue();
    await queue.add('p', 1);
    await vi.advanceTimersByTimeAsync(SECOND / 2);
    await queue.add('q', 2);
    await queue.add('p', 3);
    await vi.advanceTimersByTimeAsync(SECOND / 2 - 1);
    expect(queue.written).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(queue.written).toEqual([
      [
        ['p', 3],
        ['q', 2],
      ],
    ]);
    await vi.advanceTimersByTimeAsync(10 * SECOND);
    expect(queue.written).toHaveLength(1);
  });

  it('is written immediately by flush and by close', async () => {
    const queue = createQueue();
    await queue.add('p', 1);
    await queue.flush();
    await queue.add('p', 2);
    await queue.close();
    expect(queue.written).toEqual([[['p', 1]], [['p', 2]]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not written once it is dropped', async () => {
    const queue = createQueue();
    await queue.add('p', 1);
    await queue.add('q', 2);
    await queue.drop('p');
    await queue.flush();
    expect(queue.written).toEqual([[['q', 2]]]);
  });

  it('is dropped only after a running write of the same project has ended', async () => {
    const queue = createQueue();
    queue.slowDown();
    await queue.add('p', 1);
    const flushing = queue.flush();
    const order: string[] = [];
    const dropping = queue.drop('p').then(() => order.push('dropped'));
    await queue.drop('q').then(() => order.push('other'));
    await vi.advanceTimersByTimeAsync(10 * SECOND);
    expect(order).toEqual(['other']);
    await queue.end();
    await Promise.all([flushing, dropping]);
    expect(order).toEqual(['other', 'dropped']);
  });

  describe('while the store cannot be written', () => {
    it('stays queued, and newer health is rejected and dropped', async () => {
      const queue = createQueue();
      await queue.add('p', 1);
      queue.fill();
      await expect(queue.flush()).rejects.toMatchObject({ reason: 'full' });
      await expect(queue.add('q', 2)).rejects.toMatchObject({ reason: 'full' });
      await expect(queue.add('q', 3)).rejects.toMatchObject({ reason: 'full' });
      queue.free();
      await vi.advanceTimersByTimeAsync(SECOND);
      // The polls that failed are not stored as if they had succeeded.
      expect(queue.written).toEqual([[['p', 1]]]);
    });

    it('is written together with the first health added after the store recovers', async () => {
      const queue = createQueue();
      await queue.add('p', 1);
      queue.fill();
      await expect(queue.flush()).rejects.toThrow(StoreError);
      queue.free();
      await queue.add('q', 2);
      expect(queue.written).toEqual([
        [
          ['p', 1],
          ['q', 2],
        ],
      ]);
    });

    it('is rejected even if no earlier health is queued', async () => {
      const queue = createQueue();
      await queue.add('p', 1);
      queue.fill();
      await expect(queue.flush()).rejects.toThrow(StoreError);
      await queue.drop('p');
      await expect(queue.add('p', 2)).rejects.toMatchObject({ reason: 'full' });
      queue.free();
      await vi.advanceTimersByTimeAsync(SECOND);
      expect(queue.written).toEqual([]);
    });

    it('is not queued again if it was dropped during the failed write', async () => {
      const queue = createQueue();
      queue.slowDown();
      queue.fill();
      await queue.add('p', 1);
      const flushing = queue.flush().catch((error: unknown) => error);
      const dropped = queue.drop('p');
      await queue.end();
      await dropped;
      expect(await flushing).toBeInstanceOf(StoreError);
      queue.free();
      await vi.advanceTimersByTimeAsync(2 * SECOND);
      expect(queue.written).toEqual([]);
    });

    it('is discarded by close', async () => {
      const queue = createQueue();
      await queue.add('p', 1);
      queue.fill();
      await queue.close();
      expect(queue.written).toEqual([]);
      expect(vi.getTimerCount()).toBe(0);
    });
  });

  describe('while a write takes longer than a second', () => {
    it('makes later polls wait for the next write, which includes all of them', async () => {
      const queue = createQueue();
      queue.slowDown();
      await queue.add('p', 1);
      await vi.advanceTimersByTimeAsync(SECOND);
      await queue.add('p', 2);
      await vi.advanceTimersByTimeAsync(SECOND);
      const order: string[] = [];
      const waiting = [
        queue.add('p', 3).then(() => order.push('p')),
        queue.add('q', 4).then(() => order.push('q')),
      ];
      await vi.advanceTimersByTimeAsync(10 * SECOND);
      expect([order, queue.written]).toEqual([[], []]);
      await queue.end();
      expect([order, queue.written]).toEqual([[], [[['p', 1]]]]);
      await queue.end();
      await Promise.all(waiting);
      expect(queue.written).toEqual([
        [['p', 1]],
        [
          ['p', 3],
          ['q', 4],
        ],
      ]);
    });

    it('is written by close after that write', async () => {
      const queue = createQueue();
      queue.slowDown();
      await queue.add('p', 1);
      await vi.advanceTimersByTimeAsync(SECOND);
      await queue.add('p', 2);
      const closing = queue.close();
      await queue.end();
      await queue.end();
      await closing;
      expect(queue.written).toEqual([[['p', 1]], [['p', 2]]]);
    });
  });
});

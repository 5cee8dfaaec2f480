import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { createHealthQueue } from '../../../src/store/health-queue.ts';

const SECOND = 1000;

const noCommit = async () => {};

/** Creates a queue of numbers whose slow writes `end` ends. */
function createQueue() {
  const written: (readonly (readonly [string, number])[])[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  let isFull = false;
  let isSlow = false;
  const queue = createHealthQueue<number>(async (waiting) => {
    if (isSlow) {
      const end = Promise.withResolvers<void>();
      ends.push(end);
      await end.promise;
    }
    if (isFull) throw new StoreError('full', 'no space is left');
    written.push([...waiting]);
  }, systemClock);
  return {
    ...queue,
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

  it('is not written once it is superseded or dropped', async () => {
    const queue = createQueue();
    await queue.add('p', 1);
    await queue.add('q', 2);
    await queue.add('r', 3);
    await queue.supersede('p', noCommit);
    queue.drop('q');
    await queue.flush();
    expect(queue.written).toEqual([[['r', 3]]]);
  });

  it('is superseded only after a running write of the same project has ended', async () => {
    const queue = createQueue();
    queue.slowDown();
    await queue.add('p', 1);
    const flushing = queue.flush();
    const order: string[] = [];
    const superseding = queue.supersede('p', noCommit).then(() => order.push('superseded'));
    await queue.supersede('q', noCommit).then(() => order.push('other'));
    await vi.advanceTimersByTimeAsync(10 * SECOND);
    expect(order).toEqual(['other']);
    await queue.end();
    await Promise.all([flushing, superseding]);
    expect(order).toEqual(['other', 'superseded']);
  });

  describe('while a newer commit is under way', () => {
    /** Starts a commit that a test ends. */
    async function supersedeWaiting() {
      const queue = createQueue();
      await queue.add('p', 1);
      const end = Promise.withResolvers<string>();
      const committed = queue.supersede('p', () => end.promise).catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(10 * SECOND);
      expect(queue.written).toEqual([]);
      return { ...queue, ...end, committed };
    }

    it('is dropped when that commit succeeds', async () => {
      const queue = await supersedeWaiting();
      queue.resolve('committed');
      expect(await queue.committed).toBe('committed');
      await vi.advanceTimersByTimeAsync(10 * SECOND);
      expect(queue.written).toEqual([]);
    });

    it('stays queued if that commit fails', async () => {
      const queue = await supersedeWaiting();
      queue.reject(new StoreError('full', 'no space is left'));
      expect(await queue.committed).toBeInstanceOf(StoreError);
      await vi.advanceTimersByTimeAsync(SECOND);
      expect(queue.written).toEqual([[['p', 1]]]);
    });

    it.each([
      ['was dropped', [], (queue: ReturnType<typeof createQueue>) => queue.drop('p')],
      [
        'was replaced by newer health',
        [[['p', 2]]],
        (queue: ReturnType<typeof createQueue>) => queue.add('p', 2),
      ],
    ])(
      'is not queued again after a failed commit if it %s meanwhile',
      async (_, written, change) => {
        const queue = await supersedeWaiting();
        await change(queue);
        queue.reject(new StoreError('full', 'no space is left'));
        await queue.committed;
        await vi.advanceTimersByTimeAsync(SECOND);
        expect(queue.written).toEqual(written);
      },
    );
  });

  describe('while the store cannot be written', () => {
    it('stays queued, and newer health is rejected', async () => {
      const queue = createQueue();
      await queue.add('p', 1);
      queue.fill();
      await expect(queue.flush()).rejects.toMatchObject({ reason: 'full' });
      await expect(queue.add('q', 2)).rejects.toMatchObject({ reason: 'full' });
      await expect(queue.add('p', 3)).rejects.toMatchObject({ reason: 'full' });
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
      await queue.supersede('p', noCommit);
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
      queue.drop('p');
      await queue.end();
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

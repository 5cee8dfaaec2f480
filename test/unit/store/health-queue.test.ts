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

describe('the health of polls that changed nothing', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('is written together after a second, the newest of each project', async () => {
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

  it('is written at once by a flush and by a close', async () => {
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

  it('is superseded only when none of it is being written', async () => {
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

    it('is dropped once that commit succeeded', async () => {
      const queue = await supersedeWaiting();
      queue.resolve('committed');
      expect(await queue.committed).toBe('committed');
      await vi.advanceTimersByTimeAsync(10 * SECOND);
      expect(queue.written).toEqual([]);
    });

    it('goes on waiting if that commit fails', async () => {
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
    ])('does not come back if it %s meanwhile', async (_, written, change) => {
      const queue = await supersedeWaiting();
      await change(queue);
      queue.reject(new StoreError('full', 'no space is left'));
      await queue.committed;
      await vi.advanceTimersByTimeAsync(SECOND);
      expect(queue.written).toEqual(written);
    });
  });

  describe('while the store cannot be written', () => {
    it('goes on waiting, and the next polls fail', async () => {
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

    it('is written by the poll that finds it healed', async () => {
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

    it('fails a poll even if no earlier health waits any more', async () => {
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

    it('does not come back if it was dropped during the write', async () => {
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

    it('is given up by a close', async () => {
      const queue = createQueue();
      await queue.add('p', 1);
      queue.fill();
      await queue.close();
      expect(queue.written).toEqual([]);
      expect(vi.getTimerCount()).toBe(0);
    });
  });

  describe('while a write takes longer than a second', () => {
    it('makes the next polls wait for theirs, all for the same one', async () => {
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

    it('is written by a close after that write', async () => {
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

import { StoreError } from '../../../monitor/errors.ts';
import type { Observer } from '../../../monitor/events.ts';
import type { Clock } from '../../../monitor/ports/clock.ts';
import type { WriteCall } from '../database.ts';
import { PART_ROWS } from '../sql/poll-rows.ts';
import type { StoreThread } from './thread-client.ts';
import type { Place } from '../sql/transactions.ts';

export interface WriteQueue {
  /**
   * Makes the calls in one transaction, which may be tried twice, and resolves with their results, at most up to the
   * first that is undefined. With more than {@link PART_ROWS} `rows` to write, they are sent one by one; otherwise it has
   * to be one call. Tells of the commit, or of its failure: then nothing was done.
   * @throws {StoreError}
   */
  write<Result>(calls: () => Iterable<WriteCall>, rows: number): Promise<readonly Result[]>;
  /** Resolves when nothing is left to write. */
  idle(): Promise<void>;
}

export interface WriteQueueOptions {
  readonly thread: Pick<StoreThread, 'ask'>;
  readonly clock: Clock;
  readonly emit: Observer;
}

interface Write {
  readonly calls: () => Iterable<WriteCall>;
  readonly rows: number;
  resolve(results: unknown): void;
  reject(error: unknown): void;
}

/**
 * Writes one transaction after the other. Those that wait while one is under way share the next one, and its fsync: each
 * of them is still done whole or not at all. A large one is a transaction of its own, sent in parts.
 */
export function createWriteQueue({ thread, clock, emit }: WriteQueueOptions): WriteQueue {
  const waiting: Write[] = [];
  let writing: Promise<void> | undefined;

  async function writeAll(): Promise<void> {
    // Those who ask in the same turn come together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const group = takeGroup(waiting);
      await (group.length > 1 ? writeTogether(group) : writeEach(group));
    }
    writing = undefined;
  }

  async function writeTogether(group: readonly Write[]): Promise<void> {
    try {
      const calls = group.flatMap((write) => [...write.calls()]);
      const started = clock.monotonic();
      const results = await thread.ask<readonly unknown[]>({ write: calls, place: WHOLE });
      tellCommitted(started);
      for (const [index, write] of group.entries()) write.resolve([results[index]]);
    } catch (error) {
      // One of them may be to blame, or too large for what is left of the disk.
      if (!(error instanceof StoreError && error.reason === 'busy')) return writeEach(group);
      tellFailed(error);
      for (const write of group) write.reject(error);
    }
  }

  async function writeEach(group: readonly Write[]): Promise<void> {
    for (const write of group) {
      try {
        const started = clock.monotonic();
        const results = await writeInParts(write.calls());
        tellCommitted(started);
        write.resolve(results);
      } catch (error) {
        if (error instanceof StoreError) tellFailed(error);
        write.reject(error);
      }
    }
  }

  async function writeInParts(calls: Iterable<WriteCall>): Promise<readonly unknown[]> {
    const results: unknown[] = [];
    const parts = Iterator.from(calls);
    for (let part = parts.next(), begins = true; part.done !== true; begins = false) {
      const following = parts.next();
      const place = { begins, ends: following.done === true };
      const [result] = await thread.ask<readonly unknown[]>({ write: [part.value], place });
      results.push(result);
      if (result === undefined && !place.ends) {
        await thread.ask({ write: [], place: { begins: false, ends: true } });
        break;
      }
      part = following;
    }
    return results;
  }

  function tellCommitted(started: number): void {
    emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
  }

  function tellFailed(error: StoreError): void {
    emit({ type: 'store.commit_failed', reason: error.reason, error });
  }

  return {
    write: <Result>(calls: () => Iterable<WriteCall>, rows: number) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Result[]>();
      waiting.push({ calls, rows, resolve, reject });
      writing ??= writeAll();
      return promise;
    },
    idle: async () => await writing,
  };
}

const WHOLE: Place = { begins: true, ends: true };

/** The first of those that wait, and those after it that together are no more than a part. */
function takeGroup(waiting: Write[]): readonly Write[] {
  let rows = 0;
  const end = waiting.findIndex((write) => (rows += 1 + write.rows) > PART_ROWS);
  return waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end));
}

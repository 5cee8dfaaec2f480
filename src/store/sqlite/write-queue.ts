import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Committed, PollCommit } from '../../monitor/ports/store.ts';
import { type Outcome, toFinishes } from '../outcome.ts';
import type { Call, WriteResult, Writes } from './database.ts';
import { countRows, PART_ROWS, toParts } from './sql/poll-rows.ts';
import type { StoreThread } from './client.ts';

export interface WriteQueue {
  /**
   * Makes the call in a transaction, which may be tried twice. This and `commit` emit `store.committed`, or reject, emit
   * `store.commit_failed`, and have then done nothing.
   * @throws {StoreError}
   */
  write<Asked extends Call<Writes>>(call: Asked): Promise<ReturnType<Writes[Asked['method']]>>;
  /** Commits a poll, as `Store.commitPoll`, with its outcome. @throws {StoreError} */
  commit(poll: PollCommit, outcome: Outcome): Promise<Committed | undefined>;
  /** Resolves when nothing waits, and refuses writes from then on. */
  close(): Promise<void>;
}

export interface WriteQueueOptions {
  /** Makes the calls in a transaction, or in a piece of one. @throws {StoreError} */
  readonly writePiece: StoreThread['write'];
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly emit: Observer;
}

interface Write {
  /** Makes the calls anew each time: those of a large poll are not in memory at once. */
  readonly calls: () => Iterable<Call<Writes>>;
  readonly rows: number;
  /** Receives the results of the calls, up to the first that is undefined. */
  resolve(results: unknown): void;
  reject(error: unknown): void;
}

/**
 * Writes one transaction after the other. Writes that wait while one is under way share the next transaction and its fsync;
 * each of them is still done whole or not at all. A write of more than {@link PART_ROWS} rows is a transaction by itself,
 * sent in parts.
 */
export function createWriteQueue({ writePiece, clock, emit }: WriteQueueOptions): WriteQueue {
  const waiting: Write[] = [];
  let writing: Promise<void> | undefined;
  let isClosed = false;

  /** Resolves with the results of the calls, of which there is at least one. */
  function enqueue<Result>(
    calls: () => Iterable<Call<Writes>>,
    rows: number,
  ): Promise<readonly [Result, ...Result[]]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly [Result, ...Result[]]>();
    if (isClosed) {
      reject(new StoreError('other', 'the store is closed'));
      return promise;
    }
    waiting.push({ calls, rows, resolve, reject });
    writing ??= writeAll();
    return promise;
  }

  async function writeAll(): Promise<void> {
    // Writes of the same turn of the event loop come together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const group = takeGroup(waiting);
      if (group.length > 1) await writeTogether(group);
      else await writeEach(group);
    }
    writing = undefined;
  }

  async function writeTogether(group: readonly Write[]): Promise<void> {
    try {
      const calls = group.flatMap((write) => [...write.calls()]);
      const started = clock.monotonic();
      const results = await writePiece(calls, { begins: true, ends: true });
      emitCommitted(started);
      for (const [index, write] of group.entries()) write.resolve([results[index]]);
    } catch (error) {
      // One of them may be the cause, or too large for the free space, so each is tried alone.
      if (!(error instanceof StoreError && error.reason === 'busy')) return writeEach(group);
      emitFailed(error);
      for (const write of group) write.reject(error);
    }
  }

  async function writeEach(group: readonly Write[]): Promise<void> {
    for (const write of group) {
      try {
        const started = clock.monotonic();
        const results = await writeInParts(write.calls());
        emitCommitted(started);
        write.resolve(results);
      } catch (error) {
        if (error instanceof StoreError) emitFailed(error);
        write.reject(error);
      }
    }
  }

  async function writeInParts(calls: Iterable<Call<Writes>>): Promise<readonly WriteResult[]> {
    const results: WriteResult[] = [];
    const parts = Iterator.from(calls);
    for (let part = parts.next(), begins = true; part.done !== true; begins = false) {
      const following = parts.next();
      const ends = following.done === true;
      const [result] = await writePiece([part.value], { begins, ends });
      results.push(result);
      if (result === undefined && !ends) {
        await writePiece([], { begins: false, ends: true });
        break;
      }
      part = following;
    }
    return results;
  }

  function emitCommitted(started: number): void {
    emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
  }

  function emitFailed(error: StoreError): void {
    emit({ type: 'store.commit_failed', reason: error.reason, error });
  }

  return {
    write: async <Asked extends Call<Writes>>(call: Asked) => {
      const [result] = await enqueue<ReturnType<Writes[Asked['method']]>>(() => [call], 0);
      return result;
    },
    commit: async (poll, outcome) => {
      const calls = () =>
        toParts(poll, outcome).map((part): Call<Writes> => ({
          method: 'commitPoll',
          args: [part],
        }));
      const results = await enqueue<ReturnType<Writes['commitPoll']>>(
        calls,
        countRows(poll, outcome),
      );
      const parts = results.filter((part) => part !== undefined);
      if (parts.length < results.length) return undefined;
      const finishIds = parts.flatMap((part) => part.finishIds);
      return {
        transitions: parts.flatMap((part) => part.transitions),
        finishes: toFinishes(poll, outcome, finishIds),
      };
    },
    close: async () => {
      for (; ; await writing) {
        isClosed = writing === undefined;
        if (isClosed) return;
      }
    },
  };
}

/** Removes the first write, and the writes after it that together are at most {@link PART_ROWS} rows. */
function takeGroup(waiting: Write[]): readonly Write[] {
  let rows = 0;
  const end = waiting.findIndex((write) => (rows += 1 + write.rows) > PART_ROWS);
  return waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end));
}

import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { Committed, PollCommit } from '../../monitor/ports/store.ts';
import { type Outcome, toFinishes } from '../outcome.ts';
import type { Call, WriteResult, Writes } from './database.ts';
import { countRows, PART_ROWS, toParts } from './sql/poll-rows.ts';
import type { StoreThread } from './client.ts';

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
 * sent in parts. A write emits `store.committed`, or rejects, emits `store.commit_failed`, and has then done nothing.
 */
export class WriteQueue {
  readonly #thread: Pick<StoreThread, 'write'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #emit: Observer;
  readonly #waiting: Write[] = [];
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(thread: Pick<StoreThread, 'write'>, clock: Pick<Clock, 'monotonic'>, emit: Observer) {
    this.#thread = thread;
    this.#clock = clock;
    this.#emit = emit;
  }

  /** Makes a change in a transaction, which may be tried twice. @throws {StoreError} */
  async change(...args: Parameters<Writes['change']>): Promise<readonly unknown[]> {
    const call: Call<Writes> = { method: 'change', args };
    const [rows] = await this.#enqueue<readonly unknown[]>(() => [call], 0);
    return rows;
  }

  /** Commits a poll, as `Store.commitPoll`, with its outcome. @throws {StoreError} */
  async commit(poll: PollCommit, outcome: Outcome): Promise<Committed | undefined> {
    const calls = () =>
      toParts(poll, outcome).map((part): Call<Writes> => ({ method: 'commitPoll', args: [part] }));
    const rows = countRows(poll, outcome);
    const results = await this.#enqueue<ReturnType<Writes['commitPoll']>>(calls, rows);
    const parts = results.filter((part) => part !== undefined);
    if (parts.length < results.length) return undefined;
    const finishIds = parts.flatMap((part) => part.finishIds);
    return {
      transitions: parts.flatMap((part) => part.transitions),
      finishes: toFinishes(poll, outcome, finishIds),
    };
  }

  /** Resolves when nothing waits, and refuses writes from then on. */
  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    this.#isClosed = true;
  }

  /** Resolves with the results of the calls, of which there is at least one. */
  #enqueue<Result>(
    calls: () => Iterable<Call<Writes>>,
    rows: number,
  ): Promise<readonly [Result, ...Result[]]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly [Result, ...Result[]]>();
    if (this.#isClosed) {
      reject(new StoreError('other', 'the store is closed'));
      return promise;
    }
    this.#waiting.push({ calls, rows, resolve, reject });
    this.#writing ??= this.#writeAll();
    return promise;
  }

  async #writeAll(): Promise<void> {
    // Writes of the same turn of the event loop come together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = takeGroup(this.#waiting);
      if (group.length > 1) await this.#writeTogether(group);
      else await this.#writeEach(group);
    }
    this.#writing = undefined;
  }

  async #writeTogether(group: readonly Write[]): Promise<void> {
    try {
      const calls = group.flatMap((write) => [...write.calls()]);
      const started = this.#clock.monotonic();
      const results = await this.#thread.write(calls, { begins: true, ends: true });
      this.#emitCommitted(started);
      for (const [index, write] of group.entries()) write.resolve([results[index]]);
    } catch (error) {
      // One of them may be the cause, or too large for the free space, so each is tried alone.
      if (!(error instanceof StoreError && error.reason === 'busy')) return this.#writeEach(group);
      this.#emitFailed(error);
      for (const write of group) write.reject(error);
    }
  }

  async #writeEach(group: readonly Write[]): Promise<void> {
    for (const write of group) {
      try {
        const started = this.#clock.monotonic();
        const results = await this.#writeInParts(write.calls());
        this.#emitCommitted(started);
        write.resolve(results);
      } catch (error) {
        if (error instanceof StoreError) this.#emitFailed(error);
        write.reject(error);
      }
    }
  }

  async #writeInParts(calls: Iterable<Call<Writes>>): Promise<readonly WriteResult[]> {
    const results: WriteResult[] = [];
    const parts = Iterator.from(calls);
    for (let part = parts.next(), begins = true; part.done !== true; begins = false) {
      const following = parts.next();
      const ends = following.done === true;
      const [result] = await this.#thread.write([part.value], { begins, ends });
      results.push(result);
      if (result === undefined && !ends) {
        await this.#thread.write([], { begins: false, ends: true });
        break;
      }
      part = following;
    }
    return results;
  }

  #emitCommitted(started: number): void {
    this.#emit({ type: 'store.committed', durationMs: this.#clock.monotonic() - started });
  }

  #emitFailed(error: StoreError): void {
    this.#emit({ type: 'store.commit_failed', reason: error.reason, error });
  }
}

/** Removes the first write, and the writes after it that together are at most {@link PART_ROWS} rows. */
function takeGroup(waiting: Write[]): readonly Write[] {
  let rows = 0;
  const end = waiting.findIndex((write) => (rows += 1 + write.rows) > PART_ROWS);
  return waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end));
}

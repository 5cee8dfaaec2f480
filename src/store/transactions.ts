import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports.ts';
import type { Connection } from './connection.ts';
import { toStoreError } from './errors.ts';

export interface Transactions {
  /**
   * Runs `work` in a transaction and tells of its commit, or of its failure: it has then done nothing.
   * @throws {StoreError}
   */
  readonly write: <Result>(work: () => Result) => Result;
  /** Runs `work`, which only reads, and tells of its failure as of that of a commit. @throws {StoreError} */
  readonly read: <Result>(work: () => Result) => Result;
}

export interface TransactionOptions {
  readonly db: Connection;
  readonly path: string;
  readonly clock: Clock;
  readonly emit: Observer;
}

export function createTransactions({ db, path, clock, emit }: TransactionOptions): Transactions {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');

  function undo(): void {
    try {
      // SQLite has ended the transaction itself after some errors, and not after others, of COMMIT for one.
      if (db.inTransaction) rollback.run();
    } catch {
      // What failed before is the error to tell.
    }
  }

  function telling<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (cause) {
      undo();
      const error = toStoreError(cause, path);
      emit({ type: 'store.commit_failed', reason: error.reason, error });
      throw error;
    }
  }

  return {
    write: (work) => {
      const started = clock.monotonic();
      const result = telling(() => {
        begin.run();
        const done = work();
        commit.run();
        return done;
      });
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      return result;
    },
    read: telling,
  };
}

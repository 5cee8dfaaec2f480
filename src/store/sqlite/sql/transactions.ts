import type { Connection } from '../connection.ts';

/** Place of a piece of work in its transaction; most transactions have one piece. */
export interface Place {
  readonly begins: boolean;
  readonly ends: boolean;
}

/**
 * Runs a piece of a write transaction, and commits after the last piece. If it throws, the transaction is over and has done
 * nothing.
 */
export type RunInTransaction = <Result>(place: Place, work: () => Result) => Result;

/** `onCommit` runs before each COMMIT; if it throws, nothing is committed. */
export function createTransactions(db: Connection, onCommit = () => {}): RunInTransaction {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');

  function undo(): void {
    try {
      // After some errors SQLite has ended the transaction itself; after others, such as those of COMMIT, it has not.
      if (db.inTransaction) rollback.run();
    } catch {
      // The first error is thrown.
    }
  }

  return (place, work) => {
    try {
      if (place.begins) begin.run();
      const done = work();
      if (place.ends) onCommit();
      if (place.ends) commit.run();
      return done;
    } catch (error) {
      undo();
      throw error;
    }
  };
}

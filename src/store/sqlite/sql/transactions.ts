import type { Connection } from '../connection.ts';

/** Where a piece of work stands in its transaction; most transactions have one piece. */
export interface Place {
  readonly begins: boolean;
  readonly ends: boolean;
}

/**
 * Runs a piece of a write transaction and, if it is the last, commits it. If it throws, the whole transaction has done
 * nothing, and is over.
 */
export type RunInTransaction = <Result>(place: Place, work: () => Result) => Result;

/** `onCommit` runs before each COMMIT; if it throws, nothing is committed. */
export function createTransactions(db: Connection, onCommit = () => {}): RunInTransaction {
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

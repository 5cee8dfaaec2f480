import { StoreError } from '../../../monitor/errors.ts';
import type { Connection } from '../connection.ts';

/** The write-ahead log shrinks to this after a large commit. */
const WAL_BYTES = 16 * 1024 * 1024;

/**
 * Makes every commit on this connection survive a loss of power (docs/specification.md#durability). To be called at every
 * open: a connection to a file with a write-ahead log starts with a weaker `synchronous`, whatever the last one had.
 * @throws {StoreError} if SQLite did not do so
 */
export function makeDurable(db: Connection): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma(`journal_size_limit = ${WAL_BYTES}`);
  const journalMode = db.pragma('journal_mode', { simple: true });
  const synchronous = db.pragma('synchronous', { simple: true });
  if (journalMode === 'wal' && synchronous === 2) return;
  throw new StoreError(
    'other',
    `the store needs journal_mode wal and synchronous 2, and has ${String(journalMode)} and ${String(synchronous)}`,
  );
}

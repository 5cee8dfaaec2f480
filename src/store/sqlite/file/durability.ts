import { StoreError } from '../../../monitor/errors.ts';
import type { Connection } from '../connection.ts';

/** Size to which the write-ahead log shrinks after a large commit. */
const MAX_WAL_BYTES = 16 * 1024 * 1024;

/**
 * Makes every commit on this connection survive a loss of power (docs/specification.md#durability). Call it for each
 * connection: with a write-ahead log a connection starts with a weaker `synchronous`, whatever the last one had.
 * @throws {StoreError} if SQLite kept another setting
 */
export function makeDurable(db: Connection): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma(`journal_size_limit = ${MAX_WAL_BYTES}`);
  const journalMode = db.pragma('journal_mode', { simple: true });
  const synchronous = db.pragma('synchronous', { simple: true });
  if (journalMode === 'wal' && synchronous === 2) return;
  throw new StoreError(
    'other',
    `the store needs journal_mode wal and synchronous 2, and has ${String(journalMode)} and ${String(synchronous)}`,
  );
}

import type { Connection } from './connection.ts';
import { assertIntact, toStoreError, withStoreErrors } from './errors.ts';
import { HEALTH_COLUMNS } from '../rows.ts';
import { takeLock } from './file.ts';
import { findStore, openReadable } from './sqlite-reader.ts';

/** Tables of the store as PostgreSQL has them, in an order in which they can be filled. */
type ContentTable =
  | 'project'
  | 'record'
  | 'transition'
  | 'failure'
  | 'settlement'
  | 'prompt_duration'
  | 'error_total';

/** Values by column; booleans are 0 or 1. */
type Row = Readonly<Record<string, string | number | null>>;

/** Content of a store that no daemon can change meanwhile. */
interface StoreContents {
  /** Reads a table. Read it to its end before the next one. @throws {StoreError} */
  rows(table: ContentTable): Iterable<Row>;
  /** Returns the last number given to a row of this table, also if the row was deleted. */
  lastNumber(table: 'transition' | 'settlement'): number;
  close(): void;
}

/**
 * Opens a store for copying, and locks it against daemons until it is closed.
 * @throws {StoreError} also if there is no store, or if it is locked, damaged, or of another schema version
 */
export async function openContents(path: string): Promise<StoreContents> {
  using opened = new DisposableStack();
  // Taken before the store is opened: under the lock no other process has it open.
  const release = await withStoreErrors(path, async () => takeLock(await findStore(path)));
  opened.defer(release);
  const { db, close } = await openReadable(path);
  opened.defer(close);
  await withStoreErrors(path, () => assertIntact(db, path));
  const number = db
    .prepare<[table: string], number>(
      'SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)',
    )
    .pluck();
  const held = opened.move();
  return {
    rows: (table) => select(db, table, path),
    lastNumber: (table) => number.get(table) ?? 0,
    close: () => held.dispose(),
  };
}

function* select(db: Connection, table: ContentTable, path: string): Generator<Row> {
  try {
    yield* db.prepare<[], Row>(SELECTS[table]).iterate();
  } catch (error) {
    throw toStoreError(error, path);
  }
}

/** Rows of projects that are not being deleted. */
const KEPT = 'WHERE project_key NOT IN (SELECT project_key FROM waste)';

const SELECTS: Readonly<Record<ContentTable, string>> = {
  project: `SELECT project_key, id, configured_at, removed_at, ${HEALTH_COLUMNS}, prompts, datasets
    FROM project p ORDER BY project_key`,
  record: `SELECT project_key, kind, id, since, missing, gone, status, status_raw, name, timestamp
    FROM record ${KEPT} ORDER BY project_key, kind, id`,
  transition: `SELECT transition_id, project_key, at, kind, from_status, to_status, record_id, record_name
    FROM transition ${KEPT} ORDER BY transition_id`,
  failure: `SELECT transition_id, project_key, tries, useless_tries, first_try_at, last_try_at, next_try_at,
      settled_at, error_id, error_msg, error_msg_truncated, reason, cause, cause_id
    FROM failure ${KEPT} ORDER BY transition_id`,
  settlement: `SELECT settlement_id, transition_id
    FROM settlement JOIN failure USING (transition_id) ${KEPT} ORDER BY settlement_id`,
  prompt_duration: `SELECT project_key, status, day, bucket, count
    FROM prompt_duration ${KEPT} ORDER BY project_key, status, day, bucket`,
  error_total: `SELECT project_key, label, count, first_seen_at, last_seen_at
    FROM error_total ${KEPT} ORDER BY project_key, label`,
};

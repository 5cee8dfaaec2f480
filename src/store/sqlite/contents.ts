import { UNFINISHED_STATUSES } from '../../domain/status.ts';
import type { Connection } from './connection.ts';
import { assertIntact, toStoreError, withStoreErrors } from './errors.ts';
import { HEALTH_COLUMNS } from '../rows.ts';
import { takeLock } from './file.ts';
import { SPECIAL } from './sql/error-totals.ts';
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

const waiting = UNFINISHED_STATUSES.map((status) => `'${status}'`).join(', ');

/** Selects the summary of a listing as JSON. The patch removes null values. */
function summary(kind: string): string {
  const records = 'FROM record r WHERE r.listing_key = l.listing_key AND r.gone = 0';
  return `coalesce((SELECT json_patch('{}', json_object(
      'baselined', json(iif(l.baselined, 'true', 'false')),
      'missing', (SELECT count(*) ${records} AND r.missing > 0),
      'gone', l.gone_total,
      'failedAt', l.last_failure_at,
      'counts', json((SELECT json_group_object(status, n) FROM
        (SELECT status, count(*) AS n ${records} GROUP BY status))),
      'oldest', json((SELECT json_group_object(status, since) FROM
        (SELECT status, min(since) AS since ${records} AND status IN (${waiting}) GROUP BY status))),
      'totals', json((SELECT json_group_array(json_array(from_status, to_status, count))
        FROM transition_total t WHERE t.listing_key = l.listing_key))))
    FROM listing l WHERE l.project_key = p.project_key AND l.kind = '${kind}'), '{}')`;
}

const IS_ERROR_ID = `e.label NOT IN (${SPECIAL})`;

/** Leaves out listings without a project, and their rows: retention is deleting them. */
const SELECTS: Readonly<Record<ContentTable, string>> = {
  project: `SELECT project_key, id, configured_at, removed_at, version, ${HEALTH_COLUMNS},
      ${summary('prompt')} AS prompts, ${summary('dataset')} AS datasets
    FROM project p ORDER BY project_key`,
  record: `SELECT l.project_key, l.kind, r.id, r.since, r.missing, r.gone, r.status, r.status_raw,
      r.name, r.timestamp
    FROM record r JOIN listing l ON l.listing_key = r.listing_key
    WHERE l.project_key IS NOT NULL ORDER BY r.listing_key, r.id`,
  transition: `SELECT t.transition_id, l.project_key, t.at, l.kind, t.from_status, t.to_status,
      t.record_id, t.record_name
    FROM transition t JOIN listing l ON l.listing_key = t.listing_key
    WHERE l.project_key IS NOT NULL ORDER BY t.transition_id`,
  failure: `SELECT f.transition_id, l.project_key, f.tries, f.useless_tries, f.first_try_at,
      f.last_try_at, f.next_try_at, f.settled_at, f.error_id, f.error_msg, f.error_msg_truncated,
      f.reason, f.cause, f.cause_id
    FROM failure f JOIN listing l ON l.listing_key = f.listing_key
    WHERE l.project_key IS NOT NULL ORDER BY f.transition_id`,
  settlement: `SELECT s.settlement_id, s.transition_id
    FROM settlement s
    JOIN failure f ON f.transition_id = s.transition_id
    JOIN listing l ON l.listing_key = f.listing_key
    WHERE l.project_key IS NOT NULL ORDER BY s.settlement_id`,
  prompt_duration: `SELECT l.project_key, d.status, d.day, d.bucket, d.count
    FROM prompt_duration d JOIN listing l ON l.listing_key = d.listing_key
    WHERE l.project_key IS NOT NULL ORDER BY d.listing_key, d.status, d.day, d.bucket`,
  error_total: `SELECT l.project_key, e.label,
      iif(${IS_ERROR_ID}, row_number() OVER (PARTITION BY e.listing_key, ${IS_ERROR_ID}), NULL) AS place,
      e.count, e.first_seen_at, e.last_seen_at
    FROM error_total e JOIN listing l ON l.listing_key = e.listing_key
    WHERE l.project_key IS NOT NULL ORDER BY e.listing_key, e.label`,
};

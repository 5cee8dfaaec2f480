import { causeOf } from '../../../domain/cause.ts';
import {
  type ErrorInfo,
  errorLabel,
  MAX_ERROR_LABELS,
  SPECIAL_ERROR_LABELS,
} from '../../../domain/failure.ts';
import type { Connection } from '../connection.ts';

// What migrations compute of the failures that earlier versions have settled, in the tables of that time.

interface SettledRow {
  readonly settlement_id: number;
  readonly transition_id: number;
  readonly listing_key: number;
  readonly settled_at: number;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly reason: string | null;
}

/** Reads the settled failures one after the other, in the order in which they were settled. */
function* settledFailures(db: Connection): Generator<SettledRow> {
  const next = db.prepare<[after: number], SettledRow>(
    `SELECT s.settlement_id, f.transition_id, f.listing_key, f.settled_at, f.error_id, f.error_msg, f.reason
     FROM settlement s JOIN failure f ON f.transition_id = s.transition_id
     WHERE s.settlement_id > ? ORDER BY s.settlement_id LIMIT 1`,
  );
  for (let row = next.get(0); row !== undefined; row = next.get(row.settlement_id)) yield row;
}

function errorInfoOf({ error_id, error_msg, reason }: SettledRow): ErrorInfo | undefined {
  return reason === null ? { error_id, error_msg } : undefined;
}

/** For schema version 5: counts the failures by their error_id. */
export function countSettledFailures(db: Connection): void {
  const special = SPECIAL_ERROR_LABELS.map((label) => `'${label}'`).join(', ');
  const count = db.prepare(
    `INSERT INTO error_total (listing_key, label, count, first_seen_at, last_seen_at)
     VALUES (:listingKey,
       CASE WHEN :label IN (${special})
         OR EXISTS (SELECT 1 FROM error_total WHERE listing_key = :listingKey AND label = :label)
         OR (SELECT count(*) FROM error_total
             WHERE listing_key = :listingKey AND label NOT IN (${special})) < ${MAX_ERROR_LABELS}
         THEN :label ELSE 'other' END,
       1, :at, :at)
     ON CONFLICT (listing_key, label) DO UPDATE SET
       count = count + 1, last_seen_at = max(last_seen_at, excluded.last_seen_at)`,
  );
  for (const row of settledFailures(db)) {
    const label = errorLabel(errorInfoOf(row));
    count.run({ listingKey: row.listing_key, label, at: row.settled_at });
  }
}

/** For schema version 6: computes the causes of the failures. */
export function computeCauses(db: Connection): void {
  const setCause = db.prepare<[cause: string, transitionId: number]>(
    'UPDATE failure SET cause_id = ? WHERE transition_id = ?',
  );
  for (const row of settledFailures(db)) {
    setCause.run(causeOf(errorInfoOf(row)).id, row.transition_id);
  }
}

import {
  causeIdOf,
  SETTLED_COLUMNS,
  type SettledRow,
  SettledTotals,
} from '../../older-failures.ts';
import type { Connection } from '../connection.ts';

/** Reads the settled failures one after the other, in the order in which they were settled. */
function* settledFailures(db: Connection): Generator<SettledRow> {
  const next = db.prepare<[after: number], SettledRow>(
    `SELECT ${SETTLED_COLUMNS}, f.listing_key AS key
     FROM settlement s JOIN failure f ON f.transition_id = s.transition_id
     WHERE s.settlement_id > ? ORDER BY s.settlement_id LIMIT 1`,
  );
  for (let row = next.get(0); row !== undefined; row = next.get(row.settlement_id)) yield row;
}

/** For schema version 5: counts the failures by their error_id. */
export function countSettledFailures(db: Connection): void {
  const totals = new SettledTotals();
  for (const row of settledFailures(db)) totals.add(row);
  const insert = db.prepare(
    `INSERT INTO error_total (listing_key, label, count, first_seen_at, last_seen_at)
     VALUES (:key, :label, :count, :first_seen_at, :last_seen_at)`,
  );
  for (const total of totals.all) insert.run(total);
}

/** For schema version 6: computes the causes of the failures. */
export function computeCauses(db: Connection): void {
  const setCause = db.prepare<[cause: string, transitionId: number]>(
    'UPDATE failure SET cause_id = ? WHERE transition_id = ?',
  );
  for (const row of settledFailures(db)) setCause.run(causeIdOf(row), row.transition_id);
}

import type { EventPosition, RecordedEvents } from '../../../monitor/ports/store.ts';
import {
  type FailureColumns,
  toFailureRow,
  toTransitionRow,
  type TransitionColumns,
} from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { FAILURE_COLUMNS, TRANSITION_COLUMNS } from './row-queries.ts';

/** Creates `StoreReader.events`. */
export function createEventQuery(
  db: Connection,
): (after: EventPosition, limit: number) => RecordedEvents {
  const numbers = db
    .prepare<[table: string], number>(
      'SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)',
    )
    .pluck();
  // CROSS JOIN keeps the order of the loops, so that reading begins at the position and ends at the limit.
  const transitions = db.prepare<[after: number, limit: number], TransitionColumns>(
    `SELECT ${TRANSITION_COLUMNS}
     FROM transition t
     CROSS JOIN listing l ON l.listing_key = t.listing_key
     CROSS JOIN project p ON p.project_key = l.project_key
     WHERE t.transition_id > ? ORDER BY t.transition_id LIMIT ?`,
  );
  const settled = db.prepare<
    [after: number, limit: number],
    FailureColumns & { readonly settlement_id: number }
  >(
    `SELECT s.settlement_id, ${FAILURE_COLUMNS}
     FROM settlement s
     CROSS JOIN failure f ON f.transition_id = s.transition_id
     CROSS JOIN transition t ON t.transition_id = f.transition_id
     CROSS JOIN listing l ON l.listing_key = t.listing_key
     CROSS JOIN project p ON p.project_key = l.project_key
     WHERE s.settlement_id > ? ORDER BY s.settlement_id LIMIT ?`,
  );
  return (after, limit) => ({
    transitions: transitions.all(after.transition, limit).map(toTransitionRow),
    settled: settled
      .all(after.settlement, limit)
      .map((row) => ({ ...toFailureRow(row), settlementId: row.settlement_id })),
    end: {
      transition: numbers.get('transition') ?? 0,
      settlement: numbers.get('settlement') ?? 0,
    },
  });
}

import {
  causeIdOf,
  SETTLED_COLUMNS,
  type SettledRow,
  SettledTotals,
} from '../../older-failures.ts';
import type { RunInTransaction } from '../database.ts';

/** Number of failures that are read at once: their messages are in memory, several times over. */
const BATCH = 200;

/** Reads the settled failures in batches, in the order in which they were settled. */
async function* settledFailures(run: RunInTransaction): AsyncGenerator<readonly SettledRow[]> {
  for (let last = 0; ;) {
    const rows = await run<SettledRow>(
      `SELECT ${SETTLED_COLUMNS}, f.project_key AS key
       FROM evalwatch.settlement s JOIN evalwatch.failure f USING (transition_id)
       WHERE s.settlement_id > $1 ORDER BY s.settlement_id LIMIT ${BATCH}`,
      [last],
    );
    if (rows.length === 0) return;
    yield rows;
    last = rows.at(-1)?.settlement_id ?? last;
  }
}

/** For schema version 4: counts the failures by their error_id. */
export async function countSettledFailures(run: RunInTransaction): Promise<void> {
  const totals = new SettledTotals();
  for await (const rows of settledFailures(run)) for (const row of rows) totals.add(row);
  await run(
    `INSERT INTO evalwatch.error_total (project_key, label, place, count, first_seen_at, last_seen_at)
     SELECT * FROM json_to_recordset($1) AS e(key bigint, label text, place smallint,
       count bigint, first_seen_at bigint, last_seen_at bigint)`,
    [JSON.stringify(totals.all)],
  );
}

/** For schema version 6: computes the causes of the failures. */
export async function computeCauses(run: RunInTransaction): Promise<void> {
  for await (const rows of settledFailures(run)) {
    const causes = rows.map((row) => [row.transition_id, causeIdOf(row)] as const);
    await run(
      `UPDATE evalwatch.failure f SET cause_id = c.cause ->> 1
       FROM json_array_elements($1) AS c(cause)
       WHERE f.transition_id = (c.cause ->> 0)::bigint`,
      [JSON.stringify(causes)],
    );
  }
}

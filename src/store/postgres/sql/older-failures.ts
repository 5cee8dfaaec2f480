import { causeOf } from '../../../domain/cause.ts';
import {
  type ErrorInfo,
  errorLabel,
  isErrorId,
  MAX_ERROR_LABELS,
} from '../../../domain/failure.ts';
import type { RunInTransaction } from '../database.ts';

// What migrations compute of the failures that earlier versions have settled, in the tables of that time.

/** Number of failures that are read at once: their messages are in memory, several times over. */
const BATCH = 200;

interface SettledRow {
  readonly settlement_id: number;
  readonly transition_id: number;
  readonly project_key: number;
  readonly settled_at: number;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly reason: string | null;
}

interface Total {
  count: number;
  readonly first_seen_at: number;
  last_seen_at: number;
}

/** Reads the settled failures in batches, in the order in which they were settled. */
async function* settledFailures(run: RunInTransaction): AsyncGenerator<readonly SettledRow[]> {
  for (let last = 0; ;) {
    const rows = await run<SettledRow>(
      `SELECT s.settlement_id, f.transition_id, f.project_key, f.settled_at, f.error_id, f.error_msg, f.reason
       FROM evalwatch.settlement s JOIN evalwatch.failure f USING (transition_id)
       WHERE s.settlement_id > $1 ORDER BY s.settlement_id LIMIT ${BATCH}`,
      [last],
    );
    if (rows.length === 0) return;
    yield rows;
    last = rows.at(-1)?.settlement_id ?? last;
  }
}

function errorInfoOf({ error_id, error_msg, reason }: SettledRow): ErrorInfo | undefined {
  return reason === null ? { error_id, error_msg } : undefined;
}

/** Computes the causes of the failures that an earlier version has settled. */
export async function computeCauses(run: RunInTransaction): Promise<void> {
  for await (const rows of settledFailures(run)) {
    const causes = rows.map((row) => {
      return { transition_id: row.transition_id, cause_id: causeOf(errorInfoOf(row)).id };
    });
    await run(
      `UPDATE evalwatch.failure f SET cause_id = c.cause_id
       FROM json_to_recordset($1) AS c(transition_id bigint, cause_id text)
       WHERE f.transition_id = c.transition_id`,
      [JSON.stringify(causes)],
    );
  }
}

/** Counts the failures that an earlier version has settled by their error_id. */
export async function countSettledFailures(run: RunInTransaction): Promise<void> {
  const projects = new Map<number, Map<string, Total>>();
  for await (const rows of settledFailures(run)) {
    for (const row of rows) {
      const totals = projects.get(row.project_key) ?? new Map<string, Total>();
      projects.set(row.project_key, totals);
      count(totals, row);
    }
  }
  for (const [project_key, totals] of projects) {
    const ids = totals.keys().filter(isErrorId).toArray();
    const added = Array.from(totals, ([label, total]) => {
      const place = isErrorId(label) ? ids.indexOf(label) + 1 : null;
      return { project_key, label, place, ...total };
    });
    await run(
      `INSERT INTO evalwatch.error_total (project_key, label, place, count, first_seen_at, last_seen_at)
       SELECT * FROM json_to_recordset($1) AS e(project_key bigint, label text, place smallint,
         count bigint, first_seen_at bigint, last_seen_at bigint)`,
      [JSON.stringify(added)],
    );
  }
}

function count(totals: Map<string, Total>, row: SettledRow): void {
  const at = row.settled_at;
  const own = errorLabel(errorInfoOf(row));
  const ids = totals.keys().filter(isErrorId).toArray().length;
  const label = totals.has(own) || !isErrorId(own) || ids < MAX_ERROR_LABELS ? own : 'other';
  const total = totals.get(label) ?? { count: 0, first_seen_at: at, last_seen_at: at };
  total.count += 1;
  total.last_seen_at = Math.max(total.last_seen_at, at);
  totals.set(label, total);
}

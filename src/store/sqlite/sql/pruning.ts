import { UNFINISHED_STATUSES } from '../../../domain/status.ts';
import type { PruneLimits } from '../../../monitor/ports/store.ts';
import type { Connection } from '../connection.ts';
import { SPECIAL } from './error-totals.ts';

/** Maximum number of rows that one transaction deletes, so that polls wait for a short time only. */
const MAX_ROWS = 2000;

/** One step of the pruning. */
export interface PruningStep {
  /** Deletes up to {@link MAX_ROWS} rows; false if none was left. */
  run(limits: PruneLimits): boolean;
}

/**
 * Steps that delete rows older than their retention (docs/specification.md#retention), to be run in this order, each until it
 * deletes nothing. A removed project is deleted at once, so that it returns as a new one; its listings then have no project
 * and are deleted in chunks, with other writes in between. Rows with a pending failure stay. `onChanged` receives the
 * projects whose counts of failures changed.
 */
export function createPruning(
  db: Connection,
  onChanged: (project: string) => void,
): readonly PruningStep[] {
  const states = UNFINISHED_STATUSES.map((status) => `SELECT '${status}' AS status`).join(
    ' UNION ALL ',
  );
  const waste = 'SELECT listing_key FROM listing WHERE project_key IS NULL';
  const steps = [
    `DELETE FROM project
     WHERE removed_at < :before AND NOT EXISTS (
       SELECT 1 FROM listing l JOIN failure f ON f.listing_key = l.listing_key
       WHERE l.project_key = project.project_key AND f.settled_at IS NULL)`,
    `DELETE FROM transition WHERE transition_id IN (
       SELECT t.transition_id FROM transition t
       WHERE (t.at < :before OR t.listing_key IN (${waste})) AND NOT EXISTS (
         SELECT 1 FROM failure f WHERE f.transition_id = t.transition_id AND f.settled_at IS NULL)
       LIMIT ${MAX_ROWS})`,
    `DELETE FROM record WHERE (listing_key, id) IN (
       SELECT listing_key, id FROM record WHERE listing_key IN (${waste}) LIMIT ${MAX_ROWS})`,
    `DELETE FROM prompt_duration WHERE (listing_key, status, day, bucket) IN (
       SELECT listing_key, status, day, bucket FROM prompt_duration
       WHERE listing_key IN (${waste}) LIMIT ${MAX_ROWS})`,
    'DELETE FROM listing WHERE project_key IS NULL',
    // The cross joins look up the first days of each status in the primary key instead of reading every row.
    `DELETE FROM prompt_duration WHERE (listing_key, status, day, bucket) IN (
       SELECT d.listing_key, d.status, d.day, d.bucket
       FROM listing l CROSS JOIN (${states}) s
       CROSS JOIN prompt_duration d
         ON d.listing_key = l.listing_key AND d.status = s.status AND d.day < :firstDay
       LIMIT ${MAX_ROWS})`,
  ];
  const errorTotals = db
    .prepare<PruneLimits, string>(
      `DELETE FROM error_total WHERE (listing_key, label) IN (
         SELECT listing_key, label FROM error_total
         WHERE last_seen_at < :before AND label NOT IN (${SPECIAL}) LIMIT ${MAX_ROWS})
       RETURNING (SELECT p.id FROM listing l JOIN project p ON p.project_key = l.project_key
         WHERE l.listing_key = error_total.listing_key)`,
    )
    .pluck();
  return [
    ...steps.map((sql): PruningStep => {
      const statement = db.prepare<PruneLimits>(sql);
      return { run: (limits) => statement.run(limits).changes > 0 };
    }),
    {
      run: (limits) => {
        const projects = errorTotals.all(limits);
        for (const project of projects) onChanged(project);
        return projects.length > 0;
      },
    },
  ];
}

import { UNFINISHED_STATUSES } from '../../../domain/status.ts';
import type { PruneLimits } from '../../../monitor/ports/store.ts';
import type { Connection } from '../connection.ts';
import { SPECIAL } from './failures.ts';

/** Maximum number of rows that one transaction deletes, so that polls wait for a short time only. */
const MAX_ROWS = 2000;

/** The error_ids of a project that are counted no longer. */
export interface ForgottenErrors {
  readonly project: string;
  readonly labels: readonly string[];
}

/** One step of the pruning. Deletes up to {@link MAX_ROWS} rows; returns undefined if none was left. */
type PruningStep = (limits: PruneLimits) => readonly ForgottenErrors[] | undefined;

const RECORDS = ['record', 'project_key, kind, id'] as const;
const DURATIONS = ['prompt_duration', 'project_key, status, day, bucket'] as const;
const ERROR_TOTALS = ['error_total', 'project_key, label'] as const;

const WASTE = 'project_key IN (SELECT project_key FROM waste)';
const IS_NOT_PENDING = `NOT EXISTS (
  SELECT 1 FROM failure f WHERE f.transition_id = t.transition_id AND f.settled_at IS NULL)`;

const EMPTY_WASTE = `SELECT project_key FROM waste w
  WHERE ${['transition', 'record', 'prompt_duration', 'error_total']
    .map((table) => `NOT EXISTS (SELECT 1 FROM ${table} t WHERE t.project_key = w.project_key)`)
    .join(' AND ')}`;

/**
 * Steps that delete rows older than their retention (docs/specification.md#retention), to be run in this order, each until it
 * deletes nothing. A removed project is deleted at once, so that it returns as a new one; its rows follow in chunks, with other
 * writes in between. Rows with a pending failure stay.
 */
export function createPruning(db: Connection): readonly PruningStep[] {
  const projects = db
    .prepare<PruneLimits, number>(
      `DELETE FROM project
       WHERE removed_at < :before AND NOT EXISTS (
         SELECT 1 FROM failure f WHERE f.project_key = project.project_key AND f.settled_at IS NULL)
       RETURNING project_key`,
    )
    .pluck();
  const addWaste = db.prepare('INSERT INTO waste (project_key) VALUES (?)');
  // The cross joins look up the first days of each status in the primary key instead of reading every row.
  const statuses = UNFINISHED_STATUSES.map((status) => `SELECT '${status}' AS status`);
  const oldDurations = `SELECT d.project_key, d.status, d.day, d.bucket
    FROM project p CROSS JOIN (${statuses.join(' UNION ALL ')}) s CROSS JOIN prompt_duration d
    WHERE d.project_key = p.project_key AND d.status = s.status AND d.day < :firstDay`;
  const errorTotals = db.prepare<
    PruneLimits,
    { readonly project: string | null; readonly label: string }
  >(
    `DELETE FROM error_total WHERE (project_key, label) IN (
       SELECT project_key, label FROM error_total
       WHERE last_seen_at < :before AND label NOT IN (${SPECIAL}) LIMIT ${MAX_ROWS})
     RETURNING label, (SELECT id FROM project p WHERE p.project_key = error_total.project_key) AS project`,
  );
  return [
    (limits) => {
      const keys = projects.all(limits);
      for (const key of keys) addWaste.run(key);
      return keys.length > 0 ? [] : undefined;
    },
    transitions(db, `t.at < :before AND ${IS_NOT_PENDING}`),
    transitions(db, `t.${WASTE}`),
    rows(db, RECORDS),
    rows(db, DURATIONS),
    rows(db, DURATIONS, oldDurations),
    rows(db, ERROR_TOTALS),
    (limits) => {
      const deleted = errorTotals.all(limits);
      const byProject = Map.groupBy(deleted, ({ project }) => project);
      return deleted.length === 0
        ? undefined
        : Array.from(byProject, ([project, totals]) => ({
            project: project ?? '',
            labels: totals.map(({ label }) => label),
          }));
    },
    rows(db, ['waste', 'project_key'], EMPTY_WASTE),
  ];
}

/** Deletes transitions `t` with their failures and settlements. */
function transitions(db: Connection, condition: string): PruningStep {
  const select = db
    .prepare<PruneLimits, number>(
      `SELECT t.transition_id FROM transition t WHERE ${condition} LIMIT ${MAX_ROWS}`,
    )
    .pluck();
  const deletions = ['settlement', 'failure', 'transition'].map((table) =>
    db.prepare<[ids: string]>(
      `DELETE FROM ${table} WHERE transition_id IN (SELECT value FROM json_each(?))`,
    ),
  );
  return (limits) => {
    const ids = select.all(limits);
    if (ids.length === 0) return undefined;
    for (const deletion of deletions) deletion.run(JSON.stringify(ids));
    return [];
  };
}

/** Deletes the rows with the selected keys; by default those of deleted projects. */
function rows(
  db: Connection,
  [table, key]: readonly [table: string, key: string],
  select = `SELECT ${key} FROM ${table} WHERE ${WASTE}`,
): PruningStep {
  const statement = db.prepare<PruneLimits>(
    `DELETE FROM ${table} WHERE (${key}) IN (${select} LIMIT ${MAX_ROWS})`,
  );
  return (limits) => (statement.run(limits).changes > 0 ? [] : undefined);
}

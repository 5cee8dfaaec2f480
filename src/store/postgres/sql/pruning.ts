import type { PruneLimits } from '../../../monitor/ports/store.ts';
import type { Statement } from '../database.ts';

/** Maximum number of rows that one transaction deletes, so that polls of all workers come in between. */
const MAX_ROWS = 250;

const IS_PENDING = 'SELECT FROM evalwatch.failure f WHERE f.settled_at IS NULL AND';

/** A statement that deletes some rows. */
interface PruningStep extends Statement {
  readonly valuesOf: (limits: PruneLimits, worker: string) => readonly unknown[];
}

/** What the step returns that deletes totals of error_ids. */
export interface ForgottenError {
  readonly project: string;
  readonly label: string;
}

const none = () => [];
const before = (limits: PruneLimits) => [limits.before];

/** A table, and the columns of its primary key. */
interface Keyed {
  readonly table: string;
  readonly key: readonly string[];
}

const RECORDS: Keyed = { table: 'record', key: ['project_key', 'kind', 'id'] };
const DURATIONS: Keyed = {
  table: 'prompt_duration',
  key: ['project_key', 'status', 'day', 'bucket'],
};
const ERROR_TOTALS: Keyed = { table: 'error_total', key: ['project_key', 'label'] };

/**
 * Statements that delete rows older than their retention (docs/specification.md#retention), to be run in this order, each
 * until it deletes nothing. A removed project is deleted at once, so that it returns as a new one; its rows follow in chunks.
 * Rows with a pending failure stay. Workers that prune at the same time take different rows.
 */
export const PRUNING: readonly PruningStep[] = [
  {
    name: 'prune_projects',
    valuesOf: before,
    text: `
WITH deleted AS (
  DELETE FROM evalwatch.project p
  WHERE p.removed_at < $1 AND NOT EXISTS (${IS_PENDING} f.project_key = p.project_key)
  RETURNING p.project_key
)
INSERT INTO evalwatch.waste SELECT project_key FROM deleted`,
  },
  {
    ...deleteTransitions(
      'prune_transitions',
      `SELECT t.transition_id FROM evalwatch.transition t
      WHERE t.at < $1 AND NOT EXISTS (${IS_PENDING} f.transition_id = t.transition_id)`,
    ),
    valuesOf: before,
  },
  {
    ...deleteTransitions(
      'prune_waste',
      `SELECT t.transition_id FROM evalwatch.waste w
      JOIN evalwatch.transition t ON t.project_key = w.project_key`,
    ),
    valuesOf: none,
  },
  { ...deleteRows('prune_records', RECORDS), valuesOf: none },
  {
    ...deleteRows('prune_durations', DURATIONS, 'r.day < $1'),
    valuesOf: ({ firstDay }) => [firstDay],
  },
  { ...deleteRows('prune_waste_durations', DURATIONS), valuesOf: none },
  {
    // Only those of its own projects, so that no other worker has them in memory.
    name: 'prune_error_totals',
    valuesOf: (limits, worker) => [limits.before, worker],
    text: `
WITH old AS MATERIALIZED (
  SELECT r.project_key, r.label, p.id FROM evalwatch.project p JOIN evalwatch.error_total r USING (project_key)
  WHERE p.owner = $2 AND r.last_seen_at < $1 AND r.label NOT IN ('none', 'other')
  LIMIT ${MAX_ROWS} FOR UPDATE OF r SKIP LOCKED FOR SHARE OF p
)
DELETE FROM evalwatch.error_total r USING old
WHERE r.project_key = old.project_key AND r.label = old.label
RETURNING old.id AS project, old.label`,
  },
  { ...deleteRows('prune_waste_error_totals', ERROR_TOTALS), valuesOf: none },
  {
    name: 'prune_keys',
    valuesOf: none,
    text: `
DELETE FROM evalwatch.waste w
WHERE NOT EXISTS (SELECT FROM evalwatch.record r WHERE r.project_key = w.project_key)
  AND NOT EXISTS (SELECT FROM evalwatch.transition t WHERE t.project_key = w.project_key)
  AND NOT EXISTS (SELECT FROM evalwatch.prompt_duration d WHERE d.project_key = w.project_key)
  AND NOT EXISTS (SELECT FROM evalwatch.error_total e WHERE e.project_key = w.project_key)`,
  },
];

/** Deletes transitions with their failures and settlements. */
function deleteTransitions(name: string, which: string): Statement {
  return {
    name,
    text: `
WITH old AS MATERIALIZED (${which} LIMIT ${MAX_ROWS} FOR UPDATE OF t SKIP LOCKED),
failures AS (DELETE FROM evalwatch.failure f USING old WHERE f.transition_id = old.transition_id),
settlements AS (DELETE FROM evalwatch.settlement s USING old WHERE s.transition_id = old.transition_id)
DELETE FROM evalwatch.transition t USING old WHERE t.transition_id = old.transition_id
RETURNING t.transition_id`,
  };
}

/** Deletes the rows `r` of a table that meet the condition; without one, those of deleted projects. */
function deleteRows(name: string, { table, key }: Keyed, condition?: string): Statement {
  const which =
    condition === undefined
      ? `evalwatch.waste w JOIN evalwatch.${table} r ON r.project_key = w.project_key`
      : `evalwatch.${table} r WHERE ${condition}`;
  return {
    name,
    text: `
WITH old AS MATERIALIZED (
  SELECT r.${key.join(', r.')} FROM ${which} LIMIT ${MAX_ROWS} FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM evalwatch.${table} r USING old
WHERE (r.${key.join(', r.')}) = (old.${key.join(', old.')})
RETURNING r.project_key`,
  };
}

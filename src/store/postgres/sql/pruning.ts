import type { PruneLimits } from '../../../monitor/ports/store.ts';
import type { Statement } from '../database.ts';

/** Maximum number of rows that one transaction deletes, so that polls of all workers come in between. */
const MAX_ROWS = 250;

const IS_PENDING = 'SELECT FROM evalwatch.failure f WHERE f.settled_at IS NULL AND';

/** A statement that deletes some rows, and the limit that is its parameter. */
export interface PruningStep extends Statement {
  readonly limit?: keyof PruneLimits;
}

/**
 * Statements that delete rows older than their retention (docs/specification.md#retention), to be run in this order, each
 * until it deletes nothing. A removed project is deleted at once, so that it returns as a new one; its rows follow in chunks.
 * Rows with a pending failure stay. Workers that prune at the same time take different rows.
 */
export const PRUNING: readonly PruningStep[] = [
  {
    name: 'prune_projects',
    limit: 'before',
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
    limit: 'before',
  },
  deleteTransitions(
    'prune_waste',
    `SELECT t.transition_id FROM evalwatch.waste w
    JOIN evalwatch.transition t ON t.project_key = w.project_key`,
  ),
  {
    name: 'prune_records',
    text: `
WITH old AS MATERIALIZED (
  SELECT r.project_key, r.kind, r.id FROM evalwatch.waste w
  JOIN evalwatch.record r ON r.project_key = w.project_key
  LIMIT ${MAX_ROWS} FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM evalwatch.record r USING old
WHERE (r.project_key, r.kind, r.id) = (old.project_key, old.kind, old.id)
RETURNING r.project_key`,
  },
  {
    ...deleteDurations('prune_durations', 'evalwatch.prompt_duration d WHERE d.day < $1'),
    limit: 'firstDay',
  },
  deleteDurations(
    'prune_waste_durations',
    'evalwatch.waste w JOIN evalwatch.prompt_duration d ON d.project_key = w.project_key',
  ),
  {
    name: 'prune_error_totals',
    limit: 'before',
    text: `DELETE FROM evalwatch.error_total
      WHERE last_seen_at < $1 AND label NOT IN ('none', 'other') RETURNING project_key`,
  },
  {
    name: 'prune_waste_error_totals',
    text: `DELETE FROM evalwatch.error_total e USING evalwatch.waste w
      WHERE e.project_key = w.project_key RETURNING e.project_key`,
  },
  {
    name: 'prune_keys',
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

function deleteDurations(name: string, from: string): Statement {
  const key = ['project_key', 'status', 'day', 'bucket'];
  return {
    name,
    text: `
WITH old AS MATERIALIZED (
  SELECT d.${key.join(', d.')} FROM ${from} LIMIT ${MAX_ROWS} FOR UPDATE OF d SKIP LOCKED
)
DELETE FROM evalwatch.prompt_duration d USING old
WHERE (d.${key.join(', d.')}) = (old.${key.join(', old.')})
RETURNING d.project_key`,
  };
}

import type { PollHealth } from '../../../monitor/ports/store.ts';
import { HEALTH_COLUMNS, toHealthColumns } from '../../rows.ts';
import type { Statement } from '../database.ts';

/** Health after a poll that changed nothing else. */
export interface WaitingHealth {
  readonly epoch: number;
  /** Version of the project, if it is known. With another version the unchanged listing is another one. */
  readonly version: number | undefined;
  readonly health: PollHealth;
  readonly nextTickAt: number | undefined;
}

/** Draws the number that {@link CONFIGURE} needs, before it is sent. */
export const NEXT_EPOCH: Statement = {
  name: 'next_epoch',
  text: "SELECT nextval('evalwatch.epoch') AS epoch",
};

/**
 * Makes these the configured projects, unless another change was made since the number $3 was drawn, or the newest one is not
 * $4, if that is not NULL: a statement can be held up on its way, and must not undo a later one. Returns the number of this
 * change, drawn only now, so that a failover that sets the sequence back leaves none ahead of it. Locks the row of the number first. A removed
 * project loses its owner, even one whose configuration still has it: that worker would go on polling a project without series.
 */
export const CONFIGURE: Statement = {
  name: 'configure_projects',
  text: `
WITH wanted AS MATERIALIZED (SELECT unnest($1::text[]) COLLATE "C" AS id),
newest AS (
  UPDATE evalwatch.configuration c SET epoch = nextval('evalwatch.epoch'), projects_digest = ''
  WHERE c.epoch < $3::bigint AND ($4::bigint IS NULL OR c.epoch = $4::bigint)
  RETURNING epoch
),
added AS (
  INSERT INTO evalwatch.project (id, configured_at, epoch)
  SELECT w.id, $2, nextval('evalwatch.epoch') FROM wanted w
  WHERE EXISTS (SELECT FROM newest) AND NOT EXISTS (SELECT FROM evalwatch.project p WHERE p.id = w.id)
  ORDER BY w.id
  ON CONFLICT (id) DO NOTHING
),
changed AS (
  UPDATE evalwatch.project p
  SET removed_at = CASE WHEN w.id IS NULL THEN $2 END, owner = NULL, epoch = nextval('evalwatch.epoch')
  FROM evalwatch.project q LEFT JOIN wanted w ON w.id = q.id
  WHERE EXISTS (SELECT FROM newest) AND p.project_key = q.project_key
    AND (w.id IS NULL) = (q.removed_at IS NULL)
)
SELECT (SELECT epoch FROM newest) AS epoch`,
};

/**
 * Stores the digest $2 of these projects if the change with the number $3 is the newest, and they are what is configured. They
 * are not if a prune that began earlier has deleted one of them, or another change was being made at the same time.
 */
export const CONFIRM: Statement = {
  name: 'confirm_projects',
  text: `
WITH wanted AS MATERIALIZED (SELECT unnest($1::text[]) COLLATE "C" AS id),
differing AS MATERIALIZED (
  SELECT FROM wanted w
  FULL JOIN (SELECT id FROM evalwatch.project WHERE removed_at IS NULL) p ON p.id = w.id
  WHERE w.id IS NULL OR p.id IS NULL
  LIMIT 1
),
confirmed AS (
  UPDATE evalwatch.configuration SET projects_digest = $2
  WHERE epoch = $3::bigint AND NOT EXISTS (SELECT FROM differing)
)
SELECT EXISTS (SELECT FROM differing) AS differs`,
};

export const HEALTH: Statement = {
  name: 'load_health',
  text: `SELECT ${HEALTH_COLUMNS} FROM evalwatch.project p WHERE p.id = $1`,
};

/** Writes the health of polls that changed nothing. Returns the ids of projects that have the given owner and version. */
export const FLUSH: Statement = {
  name: 'flush_health',
  text: `
UPDATE evalwatch.project p
SET up = h.up, consecutive_failures = h.consecutive_failures, reason = h.reason,
  last_poll_at = h.last_poll_at, last_success_at = h.last_success_at, steady_since = h.steady_since,
  next_tick_at = coalesce(h.next_tick_at, p.next_tick_at)
FROM json_to_recordset($1) AS h(id text, epoch bigint, version bigint, up boolean,
  consecutive_failures integer, reason text, last_poll_at bigint, last_success_at bigint,
  steady_since bigint, next_tick_at bigint)
WHERE p.id = h.id AND p.epoch = h.epoch AND p.owner = $2 AND (h.version IS NULL OR p.version = h.version)
RETURNING p.id`,
};

/** Selects, of the projects that were not flushed, those that are still owned: their version is another. */
export const OUTDATED: Statement = {
  name: 'outdated_projects',
  text: `SELECT p.id FROM evalwatch.project p
    JOIN json_to_recordset($1) AS h(id text, epoch bigint) ON p.id = h.id AND p.epoch = h.epoch
    WHERE p.owner = $2`,
};

export function flushInput(waiting: ReadonlyMap<string, WaitingHealth>): string {
  const rows = Array.from(waiting, ([project, { epoch, version, health, nextTickAt }]) => ({
    id: project,
    epoch,
    version,
    ...toHealthColumns(health),
    next_tick_at: nextTickAt,
  }));
  return JSON.stringify(rows);
}

import type { PollHealth } from '../../../monitor/ports/store.ts';
import { toHealthColumns } from '../../rows.ts';
import type { Statement } from '../database.ts';
import { toStored } from './text.ts';

/** Health after a poll that changed nothing else. */
export interface WaitingHealth {
  readonly epoch: number;
  /** Version of the project, if it is known. With another version the unchanged listing is another one. */
  readonly version: number | undefined;
  readonly health: PollHealth;
  readonly nextTickAt: number | undefined;
}

const HEALTH_COLUMNS =
  'up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since';

/** Draws the number that {@link CONFIGURE} needs, before it is sent. */
export const NEXT_EPOCH: Statement = {
  name: 'next_epoch',
  text: "SELECT nextval('evalwatch.epoch') AS epoch",
};

/**
 * Makes these the configured projects. It can be held up on its way, and must not undo what was done since. So it leaves each
 * row alone that has got a newer epoch than the number $3, and returns one that it would have changed, if there is any. A
 * removed project loses its owner, even one whose configuration still has it: that worker would go on polling a project
 * without series. Stores the digest $4 of the configured projects, even if it leaves rows alone. Locks rows in the order of their ids, so that two workers that do so at the same time do not deadlock.
 */
export const CONFIGURE: Statement = {
  name: 'configure_projects',
  text: `
WITH wanted AS MATERIALIZED (SELECT unnest($1::text[]) COLLATE "C" AS id),
added AS (
  INSERT INTO evalwatch.project (id, configured_at, epoch)
  SELECT w.id, $2, nextval('evalwatch.epoch') FROM wanted w
  WHERE NOT EXISTS (SELECT FROM evalwatch.project p WHERE p.id = w.id)
  ORDER BY w.id
  ON CONFLICT (id) DO NOTHING
),
changed AS (
  UPDATE evalwatch.project p
  SET removed_at = CASE WHEN w.id IS NULL THEN $2 END, owner = NULL, epoch = nextval('evalwatch.epoch')
  FROM evalwatch.project q LEFT JOIN wanted w ON w.id = q.id
  WHERE p.project_key = q.project_key AND (w.id IS NULL) = (q.removed_at IS NULL) AND p.epoch < $3::bigint
),
noted AS (UPDATE evalwatch.configuration SET projects_digest = $4)
SELECT q.id FROM evalwatch.project q LEFT JOIN wanted w ON w.id = q.id
WHERE (w.id IS NULL) = (q.removed_at IS NULL) AND q.epoch >= $3::bigint
LIMIT 1`,
};

/** Selects whether a concurrent prune, which began earlier, has deleted a project that was just configured. */
export const UNCONFIGURED: Statement = {
  name: 'unconfigured_projects',
  text: `SELECT w.id FROM unnest($1::text[]) AS w(id)
    WHERE NOT EXISTS (SELECT FROM evalwatch.project p WHERE p.id = w.id AND p.removed_at IS NULL)
    LIMIT 1`,
};

export const HEALTH: Statement = {
  name: 'load_health',
  text: `SELECT ${HEALTH_COLUMNS} FROM evalwatch.project WHERE id = $1`,
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
    id: toStored(project),
    epoch,
    version,
    ...toHealthColumns(health),
    next_tick_at: nextTickAt,
  }));
  return JSON.stringify(rows);
}

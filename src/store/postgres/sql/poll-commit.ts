import type { Kind, Status } from '../../../domain/status.ts';
import type { Summary } from '../../../domain/summary.ts';
import type { CommittedTransition, PollCommit } from '../../../monitor/ports/store.ts';
import { toHealthColumns } from '../../rows.ts';
import { builtStatement, type Statement } from '../database.ts';

/** The ownership under which polls of a project are committed. Another ownership is another object. */
export interface CommitContext {
  epoch: number;
  nextTickAt: number | undefined;
  /**
   * Version of the project when its poller last read or changed it; undefined before. `outdated` once the database turns out
   * to have another version: it lost commits because an asynchronous standby was promoted, and the poller has yet to reload.
   */
  version: number | 'outdated' | undefined;
}

export interface CommitRow {
  /** In the order of the poll's transitions. */
  readonly transition_ids: readonly number[] | null;
}

/** Parts of a commit that most commits do not need; each would cost the start of its plan. */
interface CommitParts {
  readonly hasNew: boolean;
  readonly hasFailures: boolean;
  readonly hasDurations: boolean;
}

/** New records are inserted, not upserted, because an upsert would lock each row first. */
const ADDED = `
added AS (
  INSERT INTO evalwatch.record
    (project_key, kind, id, name, since, missing, gone, status, status_raw, timestamp)
  SELECT project_key, kind, id, name, since, missing, gone, status, status_raw, timestamp
  FROM record WHERE is_new
),`;

const FAILED = `,
failed AS (
  INSERT INTO evalwatch.failure (transition_id, project_key)
  SELECT transition_id, project_key FROM moved WHERE kind = 'prompt' AND to_status = 'FAILED'
)`;

const COUNTED = `,
counted AS (
  INSERT INTO evalwatch.prompt_duration AS stored (project_key, status, day, bucket, count)
  SELECT fenced.project_key, d.status, d.day, d.bucket, d.count
  FROM fenced CROSS JOIN json_to_recordset($17)
    AS d(status text, day integer, bucket integer, count bigint)
  ON CONFLICT (project_key, status, day, bucket) DO UPDATE SET count = stored.count + excluded.count
)`;

/**
 * Returns the statement that writes everything that the listings of a poll change. If the project has another epoch, owner or
 * version by now, it writes nothing and returns no row. The owner is compared because a database that lost commits may give an
 * epoch twice. The last parameter belongs to the durations.
 */
function commitStatement(parts: CommitParts): Statement {
  const { hasNew, hasFailures, hasDurations } = parts;
  const named = [hasNew && '_new', hasFailures && '_failures', hasDurations && '_durations'];
  const name = `commit_poll${named.filter((part) => part !== false).join('')}`;
  return builtStatement(name, () => textOf(parts));
}

function textOf({ hasNew, hasFailures, hasDurations }: CommitParts): string {
  return `
WITH fenced AS (
  UPDATE evalwatch.project
  SET version = version + 1, prompts = coalesce($4::json, prompts), datasets = coalesce($5::json, datasets),
    up = $9, consecutive_failures = $10, reason = $11, last_poll_at = $12, last_success_at = $13,
    next_tick_at = coalesce($14, next_tick_at), steady_since = $16
  WHERE id = $1 AND epoch = $2 AND version = $3 AND owner = $15
  RETURNING project_key, epoch, version
),
record AS MATERIALIZED (
  SELECT fenced.project_key, r.*
  FROM fenced CROSS JOIN json_to_recordset($6) AS r(kind text, id text, name text, since bigint,
    missing integer, gone boolean, status text, status_raw text, timestamp text, is_new boolean)
),${hasNew ? ADDED : ''}
changed AS (
  UPDATE evalwatch.record r
  SET name = n.name, since = n.since, missing = n.missing, gone = n.gone, status = n.status,
    status_raw = n.status_raw, timestamp = n.timestamp
  FROM record n
  WHERE NOT n.is_new AND r.project_key = n.project_key AND r.kind = n.kind AND r.id = n.id
),
moved AS (
  INSERT INTO evalwatch.transition
    (project_key, at, epoch, version, kind, from_status, to_status, record_id, record_name)
  SELECT fenced.project_key, $8, fenced.epoch, fenced.version, m.kind, m.from_status, m.to_status,
    m.id, m.name
  FROM fenced CROSS JOIN ROWS FROM (json_to_recordset($7) AS (kind text, from_status text,
    to_status text, id text, name text)) WITH ORDINALITY
    AS m(kind, from_status, to_status, id, name, position)
  ORDER BY m.position
  RETURNING transition_id, project_key, kind, to_status
)${hasDurations ? COUNTED : ''}${hasFailures ? FAILED : ''}
SELECT (SELECT json_agg(transition_id ORDER BY transition_id) FROM moved) AS transition_ids
FROM fenced`;
}

interface CommitRecord {
  readonly is_new: boolean;
  readonly [column: string]: unknown;
}

interface CommitMove {
  readonly kind: Kind;
  readonly to_status: Status;
  readonly [column: string]: unknown;
}

/** Returns the statement that commits a poll, with its values. */
export function commitOf(
  { project, at, health, token, listings, durations = [] }: PollCommit,
  summaries: ReadonlyMap<Kind, Summary>,
  { epoch, nextTickAt }: CommitContext,
  worker: string,
): { readonly statement: Statement; readonly values: readonly unknown[] } {
  const { up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since } =
    toHealthColumns(health);
  const records: CommitRecord[] = [];
  const moves: CommitMove[] = [];
  for (const [kind, changes] of listings) {
    const appeared = new Set(
      changes.transitions.filter(({ from }) => from === 'NEW').map(({ id }) => id),
    );
    for (const record of changes.records) {
      records.push({
        kind,
        id: record.id,
        is_new: changes.baseline || appeared.has(record.id),
        since: record.since,
        missing: record.missing,
        gone: record.gone,
        status: record.status,
        status_raw: record.statusRaw,
        name: record.name,
        timestamp: record.timestamp,
      });
    }
    for (const { id, name, from, to } of changes.transitions) {
      moves.push({
        kind,
        from_status: from,
        to_status: to,
        id,
        name,
      });
    }
  }
  const values = [
    project,
    epoch,
    token,
    toJson(summaries.get('prompt')),
    toJson(summaries.get('dataset')),
    JSON.stringify(records),
    JSON.stringify(moves),
    at,
    up,
    consecutive_failures,
    reason,
    last_poll_at,
    last_success_at,
    nextTickAt ?? null,
    worker,
    steady_since,
  ];
  const parts = {
    hasNew: records.some((record) => record.is_new),
    hasFailures: moves.some((move) => move.kind === 'prompt' && move.to_status === 'FAILED'),
    hasDurations: durations.length > 0,
  };
  const statement = commitStatement(parts);
  return {
    statement,
    values: parts.hasDurations ? [...values, JSON.stringify(durations)] : values,
  };
}

function toJson(summary: Summary | undefined): string | null {
  return summary === undefined ? null : JSON.stringify(summary);
}

/** Returns the transitions of a poll with the ids that its commit gave them. */
export function withIds(
  { listings }: PollCommit,
  ids: readonly number[],
): readonly CommittedTransition[] {
  return [...listings]
    .flatMap(([kind, { transitions }]) =>
      transitions.map((transition) => ({ ...transition, kind })),
    )
    .map((transition, index) => ({ ...transition, transitionId: ids[index] ?? 0 }));
}

/**
 * Finds out whether a commit was made whose answer was lost. If it was not, the ownership gets another epoch, so that the
 * commit can never be made and can be repeated under the new epoch. So does an earlier version, which a standby without the
 * last commits has after its promotion: the awaited version may come up again. The statement waits for a running commit; it
 * then changes nothing and returns `was_same`, because it still sees the earlier rows, and must be run again. Such a standby can
 * give an epoch again, to another worker, so the transitions must also have the time of the commit.
 */
export const RESOLVE: Statement = {
  name: 'resolve_commit',
  text: `
WITH renewed AS (
  UPDATE evalwatch.project SET epoch = nextval('evalwatch.epoch')
  WHERE id = $1 AND epoch = $2 AND version <= $3 AND owner = $4 RETURNING epoch
)
SELECT (SELECT epoch FROM renewed) AS renewed,
  p.epoch = $2 AND p.version = $3 AND p.owner = $4 AS was_same,
  p.epoch = $2 AND p.version = $3 + 1 AND p.owner = $4 AS is_next,
  (SELECT json_agg(t.transition_id ORDER BY t.transition_id)
   FROM evalwatch.transition t
   WHERE t.project_key = p.project_key AND t.epoch = $2 AND t.version = $3 + 1 AND t.at = $5) AS transition_ids
FROM evalwatch.project p WHERE p.id = $1`,
};

export interface ResolvedRow extends CommitRow {
  readonly renewed: number | null;
  readonly was_same: boolean | null;
  readonly is_next: boolean | null;
}

/** Selects why a commit found no row to change. */
export const REFUSAL: Statement = {
  name: 'refusal',
  text: `SELECT epoch = $2 AND owner = $3 AS is_owned FROM evalwatch.project WHERE id = $1`,
};

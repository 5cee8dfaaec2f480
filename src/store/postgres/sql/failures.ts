import { errorLabel, type Settled, type Tries } from '../../../domain/failure.ts';
import type { FailureKey, PendingFailureQuery } from '../../../monitor/ports/store.ts';
import type { Statement } from '../database.ts';
import { LEASE_HOLDS } from '../ownership/lease.ts';
import { countError } from './error-totals.ts';

/** Selects projects with pending failures, by the index, as {@link CLAIM_PENDING} does. */
export const FAILING: Statement = {
  name: 'failing_projects',
  text: `
WITH RECURSIVE waiting AS (
  SELECT min(project_key) AS project_key FROM evalwatch.failure WHERE settled_at IS NULL
  UNION ALL
  SELECT (SELECT min(f.project_key) FROM evalwatch.failure f
    WHERE f.settled_at IS NULL AND f.project_key > w.project_key)
  FROM waiting w WHERE w.project_key IS NOT NULL
)
SELECT p.id AS project, p.removed_at IS NOT NULL AS removed
FROM waiting JOIN evalwatch.project p USING (project_key)`,
};

/**
 * Claims pending failures, the oldest of each project, for a worker with a lease, unless another worker with a lease has
 * claimed them. The index finds them, so neither a long backlog nor many projects without failures cost time.
 */
export const CLAIM_PENDING: Statement = {
  name: 'claim_failures',
  text: `
WITH RECURSIVE live AS MATERIALIZED (SELECT worker FROM evalwatch.worker WHERE ${LEASE_HOLDS}),
waiting AS (
  SELECT min(project_key) AS project_key FROM evalwatch.failure WHERE settled_at IS NULL
  UNION ALL
  SELECT (SELECT min(f.project_key) FROM evalwatch.failure f
    WHERE f.settled_at IS NULL AND f.project_key > w.project_key)
  FROM waiting w WHERE w.project_key IS NOT NULL
),
due AS MATERIALIZED (
  SELECT taken.*, p.id AS project, p.removed_at
  FROM waiting JOIN evalwatch.project p USING (project_key) CROSS JOIN LATERAL (
    SELECT f.transition_id, f.claimed_by
    FROM evalwatch.failure f
    WHERE f.project_key = p.project_key AND f.settled_at IS NULL
      AND ($1::bigint IS NULL OR f.next_try_at <= $1 OR f.last_try_at > $1)
      AND (f.claimed_by IS NULL OR f.claimed_by = $4 OR f.claimed_by NOT IN (SELECT worker FROM live))
    ORDER BY f.transition_id
    LIMIT $3
    FOR UPDATE SKIP LOCKED) taken
  WHERE ($2::text[] IS NULL OR p.id IN (SELECT unnest($2))) AND $4 IN (SELECT worker FROM live)
),
claimed AS (
  UPDATE evalwatch.failure f SET claimed_by = $4
  FROM due WHERE f.transition_id = due.transition_id AND due.claimed_by IS DISTINCT FROM $4
)
SELECT due.transition_id, (t.at || ' ' || t.record_id) AS token, due.project, due.removed_at, t.record_id, t.record_name,
  f.tries, f.useless_tries, f.first_try_at, f.last_try_at, f.next_try_at
FROM due
JOIN evalwatch.failure f ON f.transition_id = due.transition_id
JOIN evalwatch.transition t ON t.transition_id = due.transition_id
ORDER BY due.transition_id`,
};

export function claimParameters(
  { dueAt, projects, limitPerProject }: PendingFailureQuery,
  worker: string,
): readonly unknown[] {
  return [dueAt ?? null, projects ?? null, limitPerProject, worker];
}

/**
 * Settles a pending failure and counts it by its error_id, even if another worker has claimed it, because its line is written.
 * Changes nothing if it is settled, or if a database that lost commits gave its number to another one.
 */
export const SETTLE: Statement = {
  name: 'settle_failure',
  text: `
WITH settled AS (
  UPDATE evalwatch.failure f
  SET settled_at = $2, error_id = $3, error_msg = $4, error_msg_truncated = $5, reason = $6, cause_id = $7
  FROM evalwatch.transition t
  WHERE f.transition_id = $1 AND f.settled_at IS NULL
    AND t.transition_id = f.transition_id AND (t.at || ' ' || t.record_id) = $9
  RETURNING f.transition_id, f.project_key
),
numbered AS (
  INSERT INTO evalwatch.settlement (transition_id) SELECT transition_id FROM settled
)
${countError('$8::text', '$2::bigint')}`,
};

export function settleParameters(
  { transitionId, token }: FailureKey,
  settled: Settled,
  at: number,
): readonly unknown[] {
  const { errorInfo, reason } = settled;
  return [
    transitionId,
    at,
    errorInfo?.error_id,
    errorInfo?.error_msg,
    errorInfo !== undefined && settled.errorMsgTruncated,
    reason ?? null,
    settled.cause,
    errorLabel(errorInfo),
    token ?? null,
  ];
}

/**
 * Postpones a failure, and lets any worker claim it, unless another worker has claimed it. Changes nothing where {@link SETTLE}
 * would change nothing.
 */
export const POSTPONE: Statement = {
  name: 'postpone_failure',
  text: `
UPDATE evalwatch.failure f
SET tries = $2, useless_tries = $3, first_try_at = $4, last_try_at = $5, next_try_at = $6,
  claimed_by = NULL
FROM evalwatch.transition t
WHERE f.transition_id = $1 AND f.settled_at IS NULL AND (f.claimed_by IS NULL OR f.claimed_by = $7)
  AND t.transition_id = f.transition_id AND (t.at || ' ' || t.record_id) = $8`,
};

export function postponeParameters(
  { transitionId, token }: FailureKey,
  { count, useless, firstAt, lastAt, nextAt }: Tries,
  worker: string,
): readonly unknown[] {
  const tries = [count, useless, firstAt ?? null, lastAt ?? null, nextAt];
  return [transitionId, ...tries, worker, token ?? null];
}

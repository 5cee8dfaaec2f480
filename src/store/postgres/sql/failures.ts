import { type ErrorTotal, errorLabel, type Settled, type Tries } from '../../../domain/failure.ts';
import type { FailureKey, PendingFailureQuery } from '../../../monitor/ports/store.ts';
import type { Statement } from '../database.ts';
import { countError } from './error-totals.ts';

/**
 * Selects pending failures of the projects of a worker, the oldest of each, with the token of the project. The index finds
 * them, so neither a long backlog nor many projects without failures cost time.
 */
export const PENDING: Statement = {
  name: 'pending_failures',
  text: `
WITH RECURSIVE waiting AS (
  SELECT min(project_key) AS project_key FROM evalwatch.failure WHERE settled_at IS NULL
  UNION ALL
  SELECT (SELECT min(f.project_key) FROM evalwatch.failure f
    WHERE f.settled_at IS NULL AND f.project_key > w.project_key)
  FROM waiting w WHERE w.project_key IS NOT NULL
)
SELECT f.transition_id, t.token, p.token AS project_token, p.id AS project, p.removed_at, t.record_id,
  t.record_name, f.tries, f.useless_tries, f.first_try_at, f.last_try_at, f.next_try_at
FROM waiting JOIN evalwatch.project p USING (project_key) CROSS JOIN LATERAL (
  SELECT * FROM evalwatch.failure f
  WHERE f.project_key = p.project_key AND f.settled_at IS NULL
    AND ($1::bigint IS NULL OR f.next_try_at <= $1 OR f.last_try_at > $1)
  ORDER BY f.transition_id
  LIMIT $3) f
JOIN evalwatch.transition t ON t.transition_id = f.transition_id
WHERE ($2::text[] IS NULL OR p.id IN (SELECT unnest($2))) AND p.owner = $4
ORDER BY f.transition_id`,
};

export function pendingParameters(
  { dueAt, projects, limitPerProject }: PendingFailureQuery,
  worker: string,
): readonly unknown[] {
  return [dueAt ?? null, projects ?? null, limitPerProject, worker];
}

/** A label of a project with its new total. */
export interface CountedError extends ErrorTotal {
  readonly project: string;
}

/**
 * Settles a pending failure and counts it by its error_id, even if another worker owns the project by now, because its line is
 * written: the project then gets another token, so that its owner reads its totals again. Changes nothing if it is settled, or if a database that lost commits gave its number to another one.
 */
export const SETTLE: Statement = {
  name: 'settle_failure',
  text: `
WITH settled AS (
  UPDATE evalwatch.failure f
  SET settled_at = $2, error_id = $3, error_msg = $4, error_msg_truncated = $5, reason = $6, cause_id = $7
  FROM evalwatch.transition t
  WHERE f.transition_id = $1 AND f.settled_at IS NULL
    AND t.transition_id = f.transition_id AND t.token IS NOT DISTINCT FROM $9::uuid
  RETURNING f.transition_id, f.project_key
),
numbered AS (
  INSERT INTO evalwatch.settlement (transition_id) SELECT transition_id FROM settled
),
told AS (
  UPDATE evalwatch.project p SET token = gen_random_uuid() FROM settled s
  WHERE p.project_key = s.project_key AND p.owner IS DISTINCT FROM $10
)
${countError('$8::text', '$2::bigint')}`,
};

export function settleParameters(
  { transitionId, token }: FailureKey,
  settled: Settled,
  at: number,
  worker: string,
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
    worker,
  ];
}

/** Postpones a failure. Changes nothing where {@link SETTLE} would change nothing. */
export const POSTPONE: Statement = {
  name: 'postpone_failure',
  text: `
UPDATE evalwatch.failure f
SET tries = $2, useless_tries = $3, first_try_at = $4, last_try_at = $5, next_try_at = $6
FROM evalwatch.transition t
WHERE f.transition_id = $1 AND f.settled_at IS NULL
  AND t.transition_id = f.transition_id AND t.token IS NOT DISTINCT FROM $7::uuid`,
};

export function postponeParameters(
  { transitionId, token }: FailureKey,
  { count, useless, firstAt, lastAt, nextAt }: Tries,
): readonly unknown[] {
  const tries = [count, useless, firstAt ?? null, lastAt ?? null, nextAt];
  return [transitionId, ...tries, token ?? null];
}

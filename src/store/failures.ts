import {
  type ErrorTotal,
  errorLabel,
  MAX_ERROR_LABELS,
  type Settled,
  SPECIAL_ERROR_LABELS,
  type Tries,
} from '../domain/failure.ts';
import type { FailureKey, PendingFailure, PendingFailureQuery } from '../monitor/ports/store.ts';
import { defined, type Selected } from './rows.ts';
import type { Change, Db, Write } from './sql.ts';

// Pending failures (docs/specification.md#pending-failures), by one text for both engines.

const IS_DUE_OLDEST = `f.settled_at IS NULL
      AND (CAST(:dueAt AS bigint) IS NULL OR f.next_try_at <= :dueAt OR f.last_try_at > :dueAt)
    ORDER BY f.transition_id LIMIT :limit`;

/** How the oldest due failures of a project `p` are found. SQLite has no LATERAL; PostgreSQL would read all that are pending. */
const OLDEST = {
  'by their ids': `evalwatch.failure f ON f.transition_id IN (
    SELECT f.transition_id FROM evalwatch.failure f WHERE f.project_key = p.project_key AND ${IS_DUE_OLDEST})`,
  'of a worker': `LATERAL (
    SELECT * FROM evalwatch.failure f WHERE f.project_key = p.project_key AND p.owner = :worker AND ${IS_DUE_OLDEST}) f`,
};

/**
 * Selects the oldest pending failures of each project. The index finds them, so neither a long backlog nor many projects without
 * failures cost time.
 */
function pendingOf(oldest: keyof typeof OLDEST): string {
  return `
WITH RECURSIVE waiting (project_key) AS (
  SELECT min(project_key) FROM evalwatch.failure WHERE settled_at IS NULL
  UNION ALL
  SELECT (SELECT min(f.project_key) FROM evalwatch.failure f
    WHERE f.settled_at IS NULL AND f.project_key > w.project_key)
  FROM waiting w WHERE w.project_key IS NOT NULL
)
SELECT f.transition_id AS "transitionId", t.token, p.token AS project_token, p.id AS project, p.removed_at AS "removedAt",
  t.record_id AS "promptId", t.record_name AS "promptName", f.tries AS count, f.useless_tries AS useless,
  f.first_try_at AS "firstAt", f.last_try_at AS "lastAt", f.next_try_at AS "nextAt"
FROM waiting CROSS JOIN evalwatch.project p CROSS JOIN ${OLDEST[oldest]}
CROSS JOIN evalwatch.transition t
WHERE p.project_key = waiting.project_key AND t.transition_id = f.transition_id
ORDER BY f.transition_id`;
}

type PendingColumns = Selected<Omit<PendingFailure, 'tries'> & Tries> & {
  readonly project_token: string;
};

const PENDING = pendingOf('by their ids');
const PENDING_OF_WORKER = pendingOf('of a worker');

/** `Store.pendingFailures`; with a worker only those of projects that it has under these tokens, none that it is giving back. */
export async function readPendingFailures(
  db: Db,
  { dueAt, projects, limitPerProject: limit }: PendingFailureQuery,
  owner?: { readonly worker: string; readonly tokens: ReadonlyMap<string, string> },
): Promise<readonly PendingFailure[]> {
  const text = owner === undefined ? PENDING : PENDING_OF_WORKER;
  const rows = await db.read<PendingColumns>('pending_failures', text, {
    dueAt,
    limit,
    worker: owner?.worker,
  });
  const asked = projects && new Set(projects);
  return rows.flatMap(({ project_token, count, useless, firstAt, lastAt, nextAt, ...row }) => {
    const { project } = row;
    const isOwned = owner === undefined || owner.tokens.get(project) === project_token;
    if (!isOwned || asked?.has(project) === false) return [];
    const tries = defined<Tries>({ count, useless, firstAt, lastAt, nextAt });
    return { ...defined<Omit<PendingFailure, 'tries'>>(row), tries };
  });
}

/** Holds for the failure `f` with this key, unless it is settled, or another one was given its number. */
const IS_PENDING = `f.transition_id = :transitionId AND f.settled_at IS NULL AND EXISTS (
  SELECT 1 FROM evalwatch.transition t
  WHERE t.transition_id = f.transition_id AND t.token IS NOT DISTINCT FROM :token)`;

/** The labels that are no error_id, for SQL. */
export const SPECIAL = SPECIAL_ERROR_LABELS.map((label) => `'${label}'`).join(', ');

/** Counts a failure under `other` if its label is an error_id and its project has all that are counted. */
const SETTLE: Change = {
  name: 'settle_failure',
  first: {
    settled: `UPDATE evalwatch.failure AS f
      SET settled_at = :at, error_id = :errorId, error_msg = :errorMsg, error_msg_truncated = :isTruncated,
        reason = :reason, cause_id = :cause
      WHERE ${IS_PENDING}
      RETURNING transition_id, project_key`,
    numbered: `INSERT INTO evalwatch.settlement (transition_id) SELECT transition_id FROM settled`,
    labelled: `SELECT s.project_key,
        CASE WHEN CAST(:label AS text) IN (${SPECIAL})
          OR EXISTS (SELECT 1 FROM evalwatch.error_total e
            WHERE e.project_key = s.project_key AND e.label = CAST(:label AS text))
          OR (SELECT count(*) FROM evalwatch.error_total e
            WHERE e.project_key = s.project_key AND e.label NOT IN (${SPECIAL})) < ${MAX_ERROR_LABELS}
        THEN CAST(:label AS text) ELSE 'other' END AS label
      FROM settled s`,
    counted: `INSERT INTO evalwatch.error_total AS stored (project_key, label, count, first_seen_at, last_seen_at)
      SELECT project_key, label, 1, CAST(:at AS bigint), CAST(:at AS bigint) FROM labelled WHERE true
      ON CONFLICT (project_key, label) DO UPDATE SET count = stored.count + 1,
        last_seen_at = CASE WHEN excluded.last_seen_at > stored.last_seen_at
          THEN excluded.last_seen_at ELSE stored.last_seen_at END
      RETURNING project_key, label, count, first_seen_at`,
  },
  last: `SELECT p.id AS project, c.label, c.count, c.first_seen_at AS "firstSeenAt"
    FROM counted c JOIN evalwatch.project p ON p.project_key = c.project_key`,
};

/**
 * `Store.settleFailure`, even if another worker owns the project by now, because its line is written. Changes nothing if it is
 * settled, or if a database that lost commits gave its number to another one. Run one at a time: it counts the error_ids of the
 * project.
 * @returns how many failures of its project now have the same error_id; undefined if it has changed nothing
 */
export async function settleFailure(
  write: Write,
  { transitionId, token }: FailureKey,
  settled: Settled,
  at: number,
): Promise<(ErrorTotal & { readonly project: string }) | undefined> {
  const { errorInfo, reason, cause } = settled;
  const [counted] = await write<ErrorTotal & { readonly project: string }>(SETTLE, {
    transitionId,
    token,
    at,
    errorId: errorInfo?.error_id ?? undefined,
    errorMsg: errorInfo?.error_msg ?? undefined,
    isTruncated: Number(errorInfo !== undefined && settled.errorMsgTruncated),
    reason,
    cause,
    label: errorLabel(errorInfo),
  });
  return counted;
}

const POSTPONE: Change = {
  name: 'postpone_failure',
  last: `UPDATE evalwatch.failure AS f
    SET tries = :count, useless_tries = :useless, first_try_at = :firstAt, last_try_at = :lastAt, next_try_at = :nextAt
    WHERE ${IS_PENDING}`,
};

/** `Store.postponeFailure`. Changes nothing where {@link settleFailure} would change nothing. */
export async function postponeFailure(
  write: Write,
  { transitionId, token }: FailureKey,
  { count, useless, firstAt, lastAt, nextAt }: Tries,
): Promise<void> {
  await write(POSTPONE, { transitionId, token, count, useless, firstAt, lastAt, nextAt });
}

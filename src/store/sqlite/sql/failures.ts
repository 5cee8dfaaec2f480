import {
  type ErrorTotal,
  errorLabel,
  MAX_ERROR_LABELS,
  type Settled,
  SPECIAL_ERROR_LABELS,
  type Tries,
} from '../../../domain/failure.ts';
import type {
  FailureKey,
  PendingFailure,
  PendingFailureQuery,
} from '../../../monitor/ports/store.ts';
import { type PendingColumns, toPendingFailure } from '../../rows.ts';
import type { Connection } from '../connection.ts';

/** The project of a failure that was settled, and how many it now has with the same error_id. */
interface SettledFailure {
  readonly project: string;
  readonly total: ErrorTotal;
}

export interface Failures {
  readonly pending: (query: PendingFailureQuery) => readonly PendingFailure[];
  /** To be run in a transaction, as is `postpone`. A failure that is settled, or is another one with its number, stays as it is. */
  readonly settle: (
    failure: FailureKey,
    settled: Settled,
    at: number,
  ) => SettledFailure | undefined;
  readonly postpone: (failure: FailureKey, tries: Tries) => void;
}

/** The labels that are no error_id, for SQL. */
export const SPECIAL = SPECIAL_ERROR_LABELS.map((label) => `'${label}'`).join(', ');

/** Holds for the failure with this key, unless it is settled. */
const IS_PENDING = `transition_id = ? AND settled_at IS NULL AND EXISTS (
  SELECT 1 FROM transition t WHERE t.transition_id = failure.transition_id AND t.token IS ?)`;

/** Reads and changes pending failures (docs/specification.md#pending-failures). */
export function createFailures(db: Connection): Failures {
  // Nothing is pending most of the time, and the query below visits every project.
  const anyPending = db.prepare<[]>('SELECT 1 FROM failure WHERE settled_at IS NULL LIMIT 1');
  // The index finds the oldest failures of each project, so a long backlog costs no time.
  const pending = db.prepare<{ dueAt: number | null; limit: number }, PendingColumns>(
    `SELECT f.transition_id, t.token, p.id AS project, t.record_id, t.record_name, p.removed_at,
       f.tries, f.useless_tries, f.first_try_at, f.last_try_at, f.next_try_at
     FROM project p
     CROSS JOIN failure f ON f.transition_id IN (
       SELECT due.transition_id FROM failure due
       WHERE due.project_key = p.project_key AND due.settled_at IS NULL
         AND (:dueAt IS NULL OR due.next_try_at <= :dueAt OR due.last_try_at > :dueAt)
       ORDER BY due.transition_id
       LIMIT :limit)
     CROSS JOIN transition t ON t.transition_id = f.transition_id
     ORDER BY f.transition_id`,
  );
  const settle = db
    .prepare<unknown[], number>(
      `UPDATE failure
       SET settled_at = ?, error_id = ?, error_msg = ?, error_msg_truncated = ?, reason = ?, cause_id = ?
       WHERE ${IS_PENDING}
       RETURNING project_key`,
    )
    .pluck();
  const note = db.prepare('INSERT INTO settlement (transition_id) VALUES (?)');
  const countError = db.prepare<object, ErrorTotal & { readonly project: string }>(
    `INSERT INTO error_total (project_key, label, count, first_seen_at, last_seen_at)
     VALUES (:key,
       CASE WHEN :label IN (${SPECIAL})
         OR EXISTS (SELECT 1 FROM error_total WHERE project_key = :key AND label = :label)
         OR (SELECT count(*) FROM error_total
             WHERE project_key = :key AND label NOT IN (${SPECIAL})) < ${MAX_ERROR_LABELS}
         THEN :label ELSE 'other' END,
       1, :at, :at)
     ON CONFLICT (project_key, label) DO UPDATE SET
       count = count + 1, last_seen_at = max(last_seen_at, excluded.last_seen_at)
     RETURNING label, count, first_seen_at AS firstSeenAt,
       (SELECT id FROM project WHERE project_key = :key) AS project`,
  );
  const postpone = db.prepare(
    `UPDATE failure
     SET tries = ?, useless_tries = ?, first_try_at = ?, last_try_at = ?, next_try_at = ?
     WHERE ${IS_PENDING}`,
  );
  return {
    pending: ({ dueAt, projects, limitPerProject }) => {
      if (anyPending.get() === undefined) return [];
      const failures = pending
        .all({ dueAt: dueAt ?? null, limit: limitPerProject })
        .map(toPendingFailure);
      if (projects === undefined) return failures;
      const asked = new Set(projects);
      return failures.filter(({ project }) => asked.has(project));
    },
    settle: ({ transitionId, token }, settled, at) => {
      const { errorInfo, reason } = settled;
      const key = settle.get(
        at,
        errorInfo?.error_id ?? null,
        errorInfo?.error_msg ?? null,
        Number(errorInfo !== undefined && settled.errorMsgTruncated),
        reason ?? null,
        settled.cause,
        transitionId,
        token ?? null,
      );
      if (key === undefined) return undefined;
      note.run(transitionId);
      const counted = countError.get({ key, label: errorLabel(errorInfo), at });
      if (counted === undefined) throw new Error('a failure was not counted');
      const { project, ...total } = counted;
      return { project, total };
    },
    postpone: ({ transitionId, token }, { count, useless, firstAt, lastAt, nextAt }) => {
      const tries = [count, useless, firstAt ?? null, lastAt ?? null, nextAt];
      postpone.run(...tries, transitionId, token ?? null);
    },
  };
}

import type { Settled, Tries } from '../../../domain/failure.ts';
import type {
  FailureKey,
  PendingFailure,
  PendingFailureQuery,
} from '../../../monitor/ports/store.ts';
import { type PendingColumns, toPendingFailure } from '../../rows.ts';
import type { Connection } from '../connection.ts';
import { createErrorCounter } from './error-totals.ts';

export interface Failures {
  readonly pending: (query: PendingFailureQuery) => readonly PendingFailure[];
  /**
   * To be run in a transaction, as is `postpone`. A failure that is settled, or is another one with its number, stays as it is;
   * of one that it settles, returns the project.
   */
  readonly settle: (failure: FailureKey, settled: Settled, at: number) => string | undefined;
  readonly postpone: (failure: FailureKey, tries: Tries) => void;
}

/** Holds for the failure with this key, unless it is settled. No file gives a number twice, so failures have no token. */
const IS_PENDING = 'transition_id = ? AND settled_at IS NULL AND ? IS NULL';

/** Reads and changes pending failures (docs/specification.md#pending-failures). */
export function createFailures(db: Connection): Failures {
  // Nothing is pending most of the time, and the query below visits every project.
  const anyPending = db.prepare<[]>('SELECT 1 FROM failure WHERE settled_at IS NULL LIMIT 1');
  // The index finds the oldest failures of each project, so a long backlog costs no time.
  const pending = db.prepare<{ dueAt: number | null; limit: number }, PendingColumns>(
    `SELECT f.transition_id, NULL AS token, p.id AS project, t.record_id, t.record_name, p.removed_at,
       f.tries, f.useless_tries, f.first_try_at, f.last_try_at, f.next_try_at
     FROM listing l
     JOIN project p ON p.project_key = l.project_key
     CROSS JOIN failure f ON f.transition_id IN (
       SELECT due.transition_id FROM failure due
       WHERE due.listing_key = l.listing_key AND due.settled_at IS NULL
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
       RETURNING listing_key`,
    )
    .pluck();
  const projectOf = db
    .prepare<[listingKey: number], string>(
      'SELECT p.id FROM listing l JOIN project p ON p.project_key = l.project_key WHERE l.listing_key = ?',
    )
    .pluck();
  const countError = createErrorCounter(db);
  const note = db.prepare('INSERT INTO settlement (transition_id) VALUES (?)');
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
      const listing = settle.get(
        at,
        errorInfo?.error_id ?? null,
        errorInfo?.error_msg ?? null,
        Number(errorInfo !== undefined && settled.errorMsgTruncated),
        reason ?? null,
        settled.cause,
        transitionId,
        token ?? null,
      );
      if (listing === undefined) return undefined;
      note.run(transitionId);
      countError(listing, errorInfo, at);
      return projectOf.get(listing);
    },
    postpone: ({ transitionId, token }, { count, useless, firstAt, lastAt, nextAt }) => {
      const tries = [count, useless, firstAt ?? null, lastAt ?? null, nextAt];
      postpone.run(...tries, transitionId, token ?? null);
    },
  };
}

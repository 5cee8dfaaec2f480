import type { Status } from '../../../domain/status.ts';
import type {
  FailureRow,
  RowQuery,
  StatusRow,
  TransitionRow,
} from '../../../monitor/ports/store.ts';
import {
  type FailureColumns,
  type StatusColumns,
  toFailureRow,
  toStatusRow,
  toTransitionRow,
  type TransitionColumns,
} from '../../rows.ts';
import type { Connection } from '../connection.ts';

/** Queries of the commands and the API (docs/specification.md#rows): the `StoreReader` methods of these names. */
export interface RowQueries {
  projects(): readonly string[];
  statuses(query: RowQuery): readonly StatusRow[];
  transitions(query: RowQuery): readonly TransitionRow[];
  failures(query: RowQuery): readonly FailureRow[];
}

export function createRowQueries(db: Connection): RowQueries {
  return {
    projects: () => db.prepare<[], string>('SELECT id FROM project ORDER BY id').pluck().all(),
    // Row by row, so that a large answer is in memory once.
    statuses: (query) => {
      const select = db.prepare<Parameters, StatusColumns>(statusesSql(query));
      return Array.from(select.iterate(toParameters(query)), toStatusRow);
    },
    transitions: (query) => {
      const select = db.prepare<Parameters, TransitionColumns>(transitionsSql(query));
      return Array.from(select.iterate(toParameters(query)), toTransitionRow);
    },
    failures: (query) => {
      const select = db.prepare<Parameters, FailureColumns>(failuresSql(query));
      return Array.from(select.iterate(toParameters(query)), toFailureRow);
    },
  };
}

interface Parameters {
  readonly project: string | null;
  readonly status: Status | null;
  readonly since: number | null;
  readonly cause: string | null;
  readonly limit: number;
  readonly afterTransition: number | null;
  readonly afterSince: number | null;
  readonly afterProject: string | null;
  readonly afterId: string | null;
}

function toParameters(query: RowQuery): Parameters {
  const { project, status, since, cause, limit, afterTransition, afterPrompt } = query;
  return {
    project: project ?? null,
    status: status ?? null,
    since: since ?? null,
    cause: cause ?? null,
    limit: limit ?? -1,
    afterTransition: afterTransition ?? null,
    afterSince: afterPrompt?.since ?? null,
    afterProject: afterPrompt?.project ?? null,
    afterId: afterPrompt?.promptId ?? null,
  };
}

/** Builds a `WHERE` of the conditions whose filter is set, so that SQLite can use an index for them. */
function where(conditions: readonly (readonly [isSet: boolean, condition: string])[]): string {
  const set = conditions.filter(([isSet]) => isSet).map(([, condition]) => condition);
  return set.length === 0 ? '' : `WHERE ${set.join(' AND ')}`;
}

/**
 * Finds the rows by the index alone before it reads them: thousands of prompts can have been in their status since the same
 * moment.
 */
function statusesSql({ project, status, since, afterPrompt, order }: RowQuery): string {
  const direction = order === 'oldest' ? 'ASC' : 'DESC';
  return `WITH found AS MATERIALIZED (
      SELECT p.id AS project, r.listing_key, r.id, r.since
      FROM project p
      JOIN listing l ON l.project_key = p.project_key AND l.kind = 'prompt'
      JOIN record r ON r.listing_key = l.listing_key AND r.gone = 0
      ${where([
        [project === undefined, 'p.removed_at IS NULL'],
        [project !== undefined, 'p.id = :project'],
        [status !== undefined, 'r.status = :status'],
        [since !== undefined, 'r.since >= :since'],
        [
          afterPrompt !== undefined,
          '(r.since < :afterSince OR (r.since = :afterSince AND (p.id, r.id) > (:afterProject, :afterId)))',
        ],
      ])}
      ORDER BY r.since ${direction}, p.id, r.id LIMIT :limit
    )
    SELECT f.project, r.id, r.name, r.status, r.status_raw, r.since, r.missing
    FROM found f CROSS JOIN record r ON r.listing_key = f.listing_key AND r.id = f.id
    ORDER BY f.since ${direction}, f.project, f.id`;
}

export const TRANSITION_COLUMNS =
  't.transition_id, t.at, p.id AS project, l.kind, t.record_id, t.from_status, t.to_status';

function transitionsSql({ project, since, afterTransition, order }: RowQuery): string {
  const [direction, after] = order === 'oldest' ? ['ASC', '>'] : ['DESC', '<'];
  return `SELECT ${TRANSITION_COLUMNS}
    FROM transition t
    JOIN listing l ON l.listing_key = t.listing_key
    JOIN project p ON p.project_key = l.project_key
    ${where([
      [project !== undefined, 'p.id = :project'],
      [since !== undefined, 't.at >= :since'],
      [afterTransition !== undefined, `t.transition_id ${after} :afterTransition`],
    ])}
    ORDER BY t.transition_id ${direction} LIMIT :limit`;
}

export const FAILURE_COLUMNS = `f.transition_id, t.at, p.id AS project, t.record_id, t.record_name,
  f.settled_at, f.error_id, f.error_msg, f.error_msg_truncated, f.reason, f.cause_id AS cause`;

function failuresSql({ project, since, cause, afterTransition }: RowQuery): string {
  return `SELECT ${FAILURE_COLUMNS}
    FROM failure f
    JOIN transition t ON t.transition_id = f.transition_id
    JOIN listing l ON l.listing_key = t.listing_key
    JOIN project p ON p.project_key = l.project_key
    ${where([
      [project !== undefined, 'p.id = :project'],
      [since !== undefined, 't.at >= :since'],
      [cause !== undefined, '(f.cause_id = :cause OR f.cause = :cause)'],
      [afterTransition !== undefined, 'f.transition_id < :afterTransition'],
    ])}
    ORDER BY f.transition_id DESC LIMIT :limit`;
}

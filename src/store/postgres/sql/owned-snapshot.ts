import type { PollHealth } from '../../../monitor/ports/store.ts';
import { BACKLOG, type BacklogColumns } from '../../reads.ts';
import { HEALTH_COLUMNS, toHealth } from '../../rows.ts';
import type { Statement } from '../database.ts';
import { PROJECT_ROW, type ProjectRow } from './snapshot.ts';

/** Number of projects in one JSON value: it is parsed at once, which takes about a millisecond. */
export const PROJECTS_PER_VALUE = 250;

const IS_OWNED = 'p.owner = $1 AND p.removed_at IS NULL';

/**
 * The stamp of a project `p`: another one once anything but its health has changed. Each commit of a listing changes the
 * token. Failures are settled, and retention deletes their totals, without another token.
 */
const STAMP = `concat_ws('.', p.project_key, p.token,
  (SELECT sum(hashtextextended(e::text, 0)) FROM evalwatch.error_total e WHERE e.project_key = p.project_key))`;

/** Selects stamp and health of the projects that this worker owns, some in each row; and what the other columns say. */
export const OWNED: Statement = {
  name: 'owned_stamps',
  text: `
WITH owned AS MATERIALIZED (
  SELECT json_build_array(p.id, ${STAMP}, ${HEALTH_COLUMNS}) AS project,
    row_number() OVER () / ${PROJECTS_PER_VALUE} AS part
  FROM evalwatch.project p WHERE ${IS_OWNED}
)
SELECT pg_postmaster_start_time()::text AS server_started_at,
  (SELECT count(*) FROM evalwatch.project WHERE removed_at IS NULL) AS configured,
  backlog.count, backlog.oldest_at, parts.projects
FROM (${BACKLOG}) AS backlog
LEFT JOIN (SELECT json_agg(project) AS projects FROM owned GROUP BY part) AS parts ON true`,
};

/** One row of {@link OWNED}; the first one if no project is owned. */
export interface OwnedRow extends BacklogColumns {
  /** Another server may have lost commits, and then uses their versions again. */
  readonly server_started_at: string;
  readonly configured: number;
  readonly projects: readonly StampRow[] | null;
}

export type StampRow = readonly [
  id: string,
  stamp: string,
  up: boolean,
  consecutiveFailures: number,
  reason: PollHealth['reason'] | null,
  lastPollAt: number | null,
  lastSuccessAt: number | null,
  steadySince: number | null,
];

/** Selects these projects with their stamps, unless this worker no longer owns them. */
export const CHANGED: Statement = {
  name: 'owned_projects',
  text: `
SELECT json_agg(json_build_array(${STAMP}, ${PROJECT_ROW})) AS projects
FROM evalwatch.project p WHERE ${IS_OWNED} AND p.id IN (SELECT unnest($2::text[]))`,
};

export interface ChangedRow {
  readonly projects: readonly (readonly [stamp: string, project: ProjectRow])[] | null;
}

export function healthOf(row: StampRow): PollHealth {
  const [, , up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since] = row;
  const times = { last_poll_at, last_success_at, steady_since };
  return toHealth({ up, consecutive_failures, reason, ...times });
}

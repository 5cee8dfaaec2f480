import type { StoreSnapshot } from '../../../monitor/ports/store.ts';
import {
  type ErrorTotalColumns,
  HEALTH_COLUMNS,
  type ProjectColumns,
  toProjectFigures,
} from '../../rows.ts';
import { BACKLOG, type BacklogColumns, toBacklog } from '../../reads.ts';
import type { Statement } from '../database.ts';

/** Number of projects whose rows are converted in one turn of the event loop. */
export const PROJECTS_PER_TURN = 250;

/** The columns of a {@link ProjectColumns} of a project `p`. */
export const PROJECT_COLUMNS = `p.id, p.configured_at, ${HEALTH_COLUMNS}, p.prompts, p.datasets,
  (SELECT json_agg(json_build_array(e.label, e.count, e.first_seen_at) ORDER BY e.label)
   FROM evalwatch.error_total e WHERE e.project_key = p.project_key) AS errors`;

/** Selects the totals by error_id of the configured projects of a worker, also of those without any. */
export const TOTALS: Statement = {
  text: `SELECT p.id, coalesce(json_agg(json_build_array(e.label, e.count, e.first_seen_at))
      FILTER (WHERE e.label IS NOT NULL), '[]') AS errors
    FROM evalwatch.project p LEFT JOIN evalwatch.error_total e ON e.project_key = p.project_key
    WHERE p.owner = $1 AND p.removed_at IS NULL GROUP BY p.id`,
};

export interface TotalsRow {
  readonly id: string;
  readonly errors: readonly ErrorTotalColumns[];
}

/** Selects every configured project at one moment, as one JSON value, which takes a tenth of the time of rows. */
export const SNAPSHOT: Statement = { name: 'snapshot', text: snapshotOf('') };
/** Selects one configured project, by its id. */
export const PROJECT_SNAPSHOT: Statement = {
  name: 'project_snapshot',
  text: snapshotOf('AND p.id = $1'),
};

function snapshotOf(restriction: string): string {
  return `
SELECT (SELECT json_agg(shown ORDER BY shown.id) FROM (
    SELECT ${PROJECT_COLUMNS}
    FROM evalwatch.project p WHERE p.removed_at IS NULL ${restriction}) AS shown) AS projects,
  backlog.count, backlog.oldest_at
FROM (${BACKLOG}) AS backlog`;
}

export interface SnapshotRow extends BacklogColumns {
  readonly projects: readonly ProjectColumns[] | null;
}

export function toSnapshot({ projects, ...backlog }: SnapshotRow): StoreSnapshot {
  return {
    projects: (projects ?? []).map((row) => toProjectFigures(row).snapshot),
    backlog: toBacklog(backlog),
  };
}

/** Selects what a scrape reads besides the figures in memory. */
export const SCRAPE: Statement = {
  name: 'scrape',
  text: `
SELECT (SELECT count(*) FROM evalwatch.project WHERE removed_at IS NULL) AS configured,
  backlog.count, backlog.oldest_at
FROM (${BACKLOG}) AS backlog`,
};

export interface ScrapeRow extends BacklogColumns {
  readonly configured: number;
}

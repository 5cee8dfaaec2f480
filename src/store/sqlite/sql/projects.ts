import type { ProjectFigures } from '../../../monitor/ports/store.ts';
import { HEALTH_COLUMNS, type HealthColumns, toProjectFigures } from '../../rows.ts';
import type { Connection } from '../connection.ts';

/** A project with its figures, still in JSON. */
export interface ProjectRow extends HealthColumns {
  readonly id: string;
  readonly configured_at: number;
  readonly prompts: string;
  readonly datasets: string;
  readonly errors: string;
}

/** Number of projects in a page: the main thread reads them in a few milliseconds. */
export const PAGE_PROJECTS = 250;

export interface Projects {
  /** Reads those of these projects that are configured. */
  readonly of: (ids: readonly string[]) => readonly ProjectRow[];
  /** Reads some of the configured projects in the order of their ids, those after this id; fewer than a page at the end. */
  readonly after: (id: string) => readonly ProjectRow[];
}

export function createProjects(db: Connection): Projects {
  const select = `SELECT p.id, p.configured_at, ${HEALTH_COLUMNS}, p.prompts, p.datasets,
      (SELECT json_group_array(json_array(e.label, e.count, e.first_seen_at) ORDER BY e.label)
       FROM error_total e WHERE e.project_key = p.project_key) AS errors
    FROM project p WHERE p.removed_at IS NULL`;
  const page = db.prepare<[after: string, limit: number], ProjectRow>(
    `${select} AND p.id > ? ORDER BY p.id LIMIT ?`,
  );
  const project = db.prepare<[id: string], ProjectRow>(`${select} AND p.id = ?`);
  return {
    of: (ids) => ids.flatMap((id) => project.all(id)),
    after: (id) => page.all(id, PAGE_PROJECTS),
  };
}

export function toFigures(row: ProjectRow): ProjectFigures {
  return toProjectFigures({
    ...row,
    prompts: JSON.parse(row.prompts),
    datasets: JSON.parse(row.datasets),
    errors: JSON.parse(row.errors),
  });
}

import type { ProjectFigures } from '../../../monitor/ports/store.ts';
import { HEALTH_COLUMNS, type HealthColumns, toProjectFigures } from '../../rows.ts';
import { CONFIGURE } from '../../projects.ts';
import type { Connection } from '../connection.ts';
import { createChanges } from './changes.ts';

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
  /**
   * `Store.configureProjects`, to be run in a transaction. Returns the projects that were not configured before, each as the
   * JSON of a {@link ProjectRow}: thousands of texts pass to the main thread in a few milliseconds, and are parsed in turns.
   */
  readonly configure: (ids: readonly string[], at: number) => readonly string[];
  /**
   * Reads some of the configured projects in the order of their ids, those after this id; fewer than a page at the end.
   * `only` restricts them to one project.
   */
  readonly after: (id: string, only?: string) => readonly ProjectRow[];
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
  const change = createChanges(db);
  return {
    configure: (ids, at) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the text says what its rows are
      const added = change(CONFIGURE, { ids: JSON.stringify(ids), at }) as { id: string }[];
      return added.flatMap(({ id }) => project.all(id)).map((row) => JSON.stringify(row));
    },
    after: (id, only) => (only === undefined ? page.all(id, PAGE_PROJECTS) : project.all(only)),
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

import type { PollHealth } from '../../../monitor/ports/store.ts';
import { HEALTH_COLUMNS, type HealthColumns, toHealth, unknownProject } from '../../rows.ts';
import type { Connection } from '../connection.ts';

export interface Projects {
  /** `Store.configureProjects`, to be run in a transaction. Returns the projects that were not configured before. */
  readonly configure: (ids: readonly string[], at: number) => readonly string[];
  readonly configured: () => readonly string[];
  /** @throws {StoreError} for a project that was never configured, or is pruned */
  readonly health: (project: string) => PollHealth;
}

export function createProjects(db: Connection): Projects {
  const add = db.prepare<[id: string, at: number]>(
    `INSERT INTO project (id, configured_at) VALUES (?, ?)
     ON CONFLICT (id) DO UPDATE SET removed_at = NULL WHERE removed_at IS NOT NULL`,
  );
  const configured = db
    .prepare<[], string>('SELECT id FROM project WHERE removed_at IS NULL')
    .pluck();
  const remove = db.prepare<[at: number, id: string]>(
    'UPDATE project SET removed_at = ? WHERE id = ?',
  );
  const health = db.prepare<[id: string], HealthColumns>(
    `SELECT ${HEALTH_COLUMNS} FROM project p WHERE p.id = ?`,
  );
  return {
    configure: (ids, at) => {
      const added = ids.filter((id) => add.run(id, at).changes > 0);
      const kept = new Set(ids);
      for (const id of configured.all()) if (!kept.has(id)) remove.run(at, id);
      return added;
    },
    configured: () => configured.all(),
    health: (project) => {
      const row = health.get(project);
      if (row === undefined) throw unknownProject(project);
      return toHealth(row);
    },
  };
}

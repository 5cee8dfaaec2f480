import type { Kind, UnfinishedStatus } from '../domain/status.ts';
import type { Summary } from '../domain/summary.ts';
import type { PollCommit, PollHealth, ProjectFigures } from '../monitor/ports/store.ts';
import {
  HEALTH_COLUMNS,
  type HealthColumns,
  PROJECT_COLUMNS,
  type ProjectColumns,
  toHealth,
  toProjectFigures,
  unknownProject,
} from './rows.ts';
import type { Change, Db } from './sql.ts';

/**
 * Makes `ids`, a JSON array, the configured projects. One that is added or removed gets another token, so that no poll from
 * before is committed. A removed project keeps its owner, who reports its failures. What retention deletes at the same moment
 * is added anew.
 */
export const CONFIGURE: Change = {
  name: 'configure_projects',
  first: {
    wanted: 'SELECT value AS id FROM json_each(:ids)',
    changed: `UPDATE evalwatch.project AS p
      SET removed_at = CASE WHEN p.removed_at IS NULL THEN CAST(:at AS bigint) END, token = gen_random_uuid()
      WHERE (p.id IN (SELECT id FROM wanted)) = (p.removed_at IS NOT NULL)
      RETURNING id, removed_at`,
    added: `INSERT INTO evalwatch.project (id, configured_at, token)
      SELECT w.id, CAST(:at AS bigint), gen_random_uuid() FROM wanted w
      WHERE NOT EXISTS (SELECT 1 FROM evalwatch.project p WHERE p.id = w.id AND p.removed_at IS NULL)
      ORDER BY w.id
      ON CONFLICT (id) DO NOTHING
      RETURNING id`,
  },
  last: 'SELECT count(*) FROM added',
};

/** `Store.loadHealth`. @throws {StoreError} for a project that was never configured, or is pruned */
export async function readHealth(db: Db, project: string): Promise<PollHealth> {
  const health = await findHealth(db, project);
  if (health === undefined) throw unknownProject(project);
  return health;
}

/** Does what {@link readHealth} does; undefined for an unknown project. */
export async function findHealth(db: Db, project: string): Promise<PollHealth | undefined> {
  const text = `SELECT ${HEALTH_COLUMNS} FROM evalwatch.project p WHERE p.id = :project`;
  const [row] = await db.read<HealthColumns>('load_health', text, { project });
  return row && toHealth(row);
}

/** Reads the figures of the configured projects at one moment, or of those among these, in the order of their ids. */
export async function readFigures(
  db: Db,
  ids?: readonly string[],
): Promise<readonly ProjectFigures[]> {
  const [name, condition] =
    ids === undefined
      ? ['figures', '']
      : ['figures_of', 'AND p.id IN (SELECT value FROM json_each(:ids))'];
  const text = `SELECT ${PROJECT_COLUMNS} FROM evalwatch.project p
    WHERE p.removed_at IS NULL ${condition} ORDER BY p.id`;
  const rows = await db.read<ProjectColumns>(name, text, { ids: ids && JSON.stringify(ids) });
  return rows.map(toProjectFigures);
}

/** Reads the earliest `since` in some statuses of the records that a poll does not change. */
export async function readOldestOthers(
  db: Db,
  { project, listings }: PollCommit,
  kind: Kind,
  statuses: readonly UnfinishedStatus[],
): Promise<Summary['oldest']> {
  const ids = JSON.stringify(listings.get(kind)?.records.map(({ id }) => id) ?? []);
  // The last condition is that of the index.
  const text = `SELECT r.since FROM evalwatch.project p CROSS JOIN evalwatch.record r INDEXED BY record_waiting
    WHERE p.id = :project AND r.project_key = p.project_key AND r.kind = :kind AND r.status = :status
      AND r.id NOT IN (SELECT value FROM json_each(:ids))
      AND NOT r.gone AND r.status IN ('PENDING', 'RUNNING')
    ORDER BY r.since LIMIT 1`;
  const oldest = statuses.map(async (status) => {
    const asked = { project, kind, status, ids };
    const [row] = await db.read<{ readonly since: number }>('oldest_other', text, asked);
    return [status, row?.since] as const;
  });
  return Object.fromEntries(await Promise.all(oldest));
}

import type { Change } from './sql.ts';

/**
 * Makes `ids`, a JSON array, the configured projects. One that is added or removed gets another token, so that no poll from
 * before is committed. A removed project keeps its owner, who reports its failures. Returns the ids of the projects that were
 * not configured before.
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
      WHERE NOT EXISTS (SELECT 1 FROM evalwatch.project p WHERE p.id = w.id)
      ORDER BY w.id
      ON CONFLICT (id) DO NOTHING
      RETURNING id`,
  },
  last: 'SELECT id FROM added UNION ALL SELECT id FROM changed WHERE removed_at IS NULL',
};

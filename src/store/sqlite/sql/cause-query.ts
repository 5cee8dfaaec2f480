import {
  type CauseList,
  type CauseQuery,
  MAX_GROUPED_FAILURES,
} from '../../../monitor/ports/store.ts';
import { type CauseColumns, toCauseList } from '../../rows.ts';
import type { Connection } from '../connection.ts';

/** Creates `StoreReader.causes`. Messages are read only of one failure of each cause in the answer. */
export function createCauseQuery(db: Connection): (query: CauseQuery) => CauseList {
  const select = (of: string) => `
    WITH shown AS MATERIALIZED (
      SELECT l.listing_key, l.project_key FROM project p
      JOIN listing l ON l.project_key = p.project_key AND l.kind = 'prompt'
      WHERE ${of}
    ),
    newest AS MATERIALIZED (
      SELECT t.listing_key, t.transition_id, t.at FROM shown
      CROSS JOIN transition t
        ON t.listing_key = shown.listing_key AND t.to_status = 'FAILED' AND t.at >= :since
      ORDER BY t.at DESC LIMIT :maxFailures
    ),
    counted AS MATERIALIZED (
      SELECT f.cause_id AS cause, count(*) AS count, count(DISTINCT t.listing_key) AS projects,
        min(t.at) AS first_at, max(t.at) AS last_at, max(t.transition_id) AS transition_id
      FROM newest t
      CROSS JOIN failure f INDEXED BY failure_listing
        ON f.listing_key = t.listing_key AND f.transition_id = t.transition_id AND f.cause_id IS NOT NULL
      GROUP BY f.cause_id
    ),
    ranked AS (
      SELECT *, count(*) OVER () AS total_causes, sum(count) OVER () AS total_count FROM counted
      ORDER BY count DESC, last_at DESC, cause LIMIT :limit
    )
    SELECT ranked.*, f.error_id, f.error_msg, f.reason,
      NOT EXISTS (
        SELECT 1 FROM shown
        JOIN transition t ON t.transition_id = (
          SELECT min(old.transition_id) FROM failure old
          WHERE old.cause_id = ranked.cause AND old.listing_key = shown.listing_key
        )
        WHERE t.at < :since
      ) AS is_new
    FROM ranked JOIN failure f ON f.transition_id = ranked.transition_id
    ORDER BY ranked.count DESC, ranked.last_at DESC, ranked.cause`;
  return ({ project, since, limit, maxFailures = MAX_GROUPED_FAILURES }) => {
    const of = project === undefined ? 'p.removed_at IS NULL' : 'p.id = :project';
    const rows = db
      .prepare<object, CauseColumns>(select(of))
      .all({ project: project ?? null, since, limit, maxFailures });
    return toCauseList(rows);
  };
}

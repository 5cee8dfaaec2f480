import {
  type CauseList,
  type CauseQuery,
  MAX_GROUPED_FAILURES,
} from '../../../monitor/ports/store.ts';
import { type CauseColumns, toCauseList } from '../../rows.ts';
import type { Database } from '../database.ts';

/** Messages are read only of one failure of each cause in the answer. Failures that an older worker settled have no cause. */
const SELECT = {
  name: 'causes',
  text: `
WITH shown AS MATERIALIZED (
  SELECT p.project_key FROM evalwatch.project p
  WHERE CASE WHEN $1::text IS NULL THEN p.removed_at IS NULL ELSE p.id = $1 END
),
newest AS MATERIALIZED (
  SELECT t.project_key, t.transition_id, t.at FROM shown
  JOIN evalwatch.transition t
    ON t.project_key = shown.project_key AND t.kind = 'prompt' AND t.to_status = 'FAILED' AND t.at >= $2
  ORDER BY t.at DESC LIMIT $4
),
counted AS MATERIALIZED (
  SELECT f.cause_id AS cause, count(*) AS count, count(DISTINCT t.project_key)::integer AS projects,
    min(t.at) AS first_at, max(t.at) AS last_at, max(t.transition_id) AS transition_id
  FROM newest t
  JOIN evalwatch.failure f ON f.transition_id = t.transition_id AND f.cause_id IS NOT NULL
  GROUP BY f.cause_id
),
ranked AS (
  SELECT *, (count(*) OVER ())::integer AS total_causes, (sum(count) OVER ())::bigint AS total_count
  FROM counted ORDER BY count DESC, last_at DESC, cause LIMIT $3
)
SELECT ranked.*, f.error_id, f.error_msg, f.reason,
  NOT EXISTS (
    SELECT FROM shown
    JOIN evalwatch.transition t ON t.transition_id = (
      SELECT min(old.transition_id) FROM evalwatch.failure old
      WHERE old.cause_id = ranked.cause AND old.project_key = shown.project_key AND old.settled_at IS NOT NULL
    )
    WHERE t.at < $2
  ) AS is_new
FROM ranked JOIN evalwatch.failure f ON f.transition_id = ranked.transition_id
ORDER BY ranked.count DESC, ranked.last_at DESC, ranked.cause`,
};

/** Creates `StoreReader.causes`. */
export function createCauseQuery(
  database: Pick<Database, 'query'>,
): (query: CauseQuery) => Promise<CauseList> {
  return async ({ project, since, limit, maxFailures = MAX_GROUPED_FAILURES }) => {
    const parameters = [project, since, limit, maxFailures];
    return toCauseList(await database.query<CauseColumns>(SELECT, parameters));
  };
}

import type { FailureCount, FailureCountQuery } from '../../../monitor/ports/store.ts';
import type { Database, Statement } from '../database.ts';

const COUNT: Statement = {
  name: 'failure_counts',
  text: `
SELECT p.id AS project, counted.count
FROM evalwatch.project p
CROSS JOIN LATERAL (
  SELECT count(*) FROM (
    SELECT FROM evalwatch.transition t
    WHERE t.project_key = p.project_key AND t.kind = 'prompt' AND t.to_status = 'FAILED' AND t.at >= $2
    LIMIT $3
  ) AS limited
) AS counted
WHERE CASE WHEN $1::text IS NULL THEN p.removed_at IS NULL ELSE p.id = $1 END AND counted.count > 0`,
};

/** Creates `StoreReader.failureCounts`, which counts entries of an index up to the limit of each project. */
export function createFailureCounts(
  database: Pick<Database, 'query'>,
): (query: FailureCountQuery) => Promise<readonly FailureCount[]> {
  return async ({ project, since, limitPerProject }) => {
    return await database.query<FailureCount>(COUNT, [project, since, limitPerProject]);
  };
}

import type { FailureCount, FailureCountQuery } from '../../../monitor/ports/store.ts';
import type { Connection } from '../connection.ts';

/** Creates `StoreReader.failureCounts`, which counts entries of an index up to the limit of each project. */
export function createFailureCounts(
  db: Connection,
): (query: FailureCountQuery) => readonly FailureCount[] {
  const select = (of: string) => `
    SELECT project, count FROM (
      SELECT p.id AS project, (
        SELECT count(*) FROM (
          SELECT 1 FROM transition t
          WHERE t.listing_key = l.listing_key AND t.to_status = 'FAILED' AND t.at >= :since
          LIMIT :limitPerProject
        )
      ) AS count
      FROM project p JOIN listing l ON l.project_key = p.project_key AND l.kind = 'prompt'
      WHERE ${of}
    ) WHERE count > 0`;
  return ({ project, since, limitPerProject }) =>
    db
      .prepare<object, FailureCount>(
        select(project === undefined ? 'p.removed_at IS NULL' : 'p.id = :project'),
      )
      .all({ project: project ?? null, since, limitPerProject });
}

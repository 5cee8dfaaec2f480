import type { MoveCount, MoveHistory, MoveQuery } from '../../../monitor/ports/store.ts';
import type { Database } from '../database.ts';

const JOINED = `FROM evalwatch.transition t
  JOIN evalwatch.project p ON p.project_key = t.project_key
    AND CASE WHEN $1::text IS NULL THEN p.removed_at IS NULL ELSE p.id = $1 END`;

const FIRST_LEFT_OUT = {
  text: `SELECT t.at ${JOINED} WHERE t.kind = 'prompt' AND t.at >= $2
    ORDER BY t.at DESC LIMIT 1 OFFSET $3`,
};

const COUNT = {
  text: `SELECT p.id AS project, ((t.at - $2) / $3)::integer AS span, t.from_status AS "from",
      t.to_status AS "to", count(*) AS count, count(*) FILTER (WHERE NOT r.gone) AS listed
    ${JOINED}
    JOIN evalwatch.record r
      ON r.project_key = t.project_key AND r.kind = t.kind AND r.id = t.record_id
    WHERE t.kind = 'prompt' AND t.at > $4
    GROUP BY 1, 2, 3, 4`,
};

/** Creates `StoreReader.moves`. The database counts, so that a busy day is not read row by row. */
export function createMoveQuery(
  database: Pick<Database, 'query'>,
): (query: MoveQuery) => Promise<MoveHistory> {
  return async ({ project, since, spanMs, limit }) => {
    const [leftOut] = await database.query<{ readonly at: number }>(FIRST_LEFT_OUT, [
      project,
      since,
      limit,
    ]);
    const after = leftOut?.at ?? since - 1;
    const moves = await database.query<MoveCount>(COUNT, [project, since, spanMs, after]);
    return { since: leftOut?.at ?? since, moves };
  };
}

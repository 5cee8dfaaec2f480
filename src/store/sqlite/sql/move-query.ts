import type { MoveCount, MoveHistory, MoveQuery } from '../../../monitor/ports/store.ts';
import type { Connection } from '../connection.ts';

const JOINED = `FROM transition t
  JOIN listing l ON l.listing_key = t.listing_key AND l.kind = 'prompt'
  JOIN project p ON p.project_key = l.project_key`;

/** Takes most of the time of the query, so it is left out for listings without gone records. */
const IS_LISTED = `(
  SELECT r.gone = 0 FROM record r WHERE r.listing_key = t.listing_key AND r.id = t.record_id)`;

/** Creates `StoreReader.moves`. The database counts, so that a busy day is not read row by row. */
export function createMoveQuery(db: Connection): (query: MoveQuery) => MoveHistory {
  return ({ project, since, spanMs, limit }) => {
    const of = project === undefined ? 'p.removed_at IS NULL' : 'p.id = :project';
    const parameters = { project: project ?? null, since, spanMs, limit };
    const firstLeftOut = db
      .prepare<object, number>(
        `SELECT t.at ${JOINED} WHERE ${of} AND t.at >= :since ORDER BY t.at DESC LIMIT 1 OFFSET :limit`,
      )
      .pluck()
      .get(parameters);
    const after = firstLeftOut ?? since - 1;
    const moves = db
      .prepare<object, MoveCount>(
        `SELECT p.id AS project, CAST((t.at - :since) / :spanMs AS INTEGER) AS span,
           t.from_status AS "from", t.to_status AS "to", count(*) AS count,
           sum(l.gone_total = 0 OR ${IS_LISTED}) AS listed
         ${JOINED}
         WHERE ${of} AND t.at > :after
         GROUP BY 1, 2, 3, 4`,
      )
      .all({ ...parameters, after });
    return { since: firstLeftOut ?? since, moves };
  };
}

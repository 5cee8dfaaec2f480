import type { RowQuery } from '../../../monitor/ports/store.ts';
import type { Statement } from '../database.ts';

export const PROJECTS: Statement = {
  name: 'projects',
  text: 'SELECT id FROM evalwatch.project ORDER BY id',
};

export interface Query {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** Builds a query from the conditions that have a value; each `?` stands for a value. */
function select(
  head: string,
  conditions: readonly (readonly [condition: string, ...values: readonly unknown[]])[],
  tail: string,
  limit: number | undefined,
): Query {
  const values: unknown[] = [];
  const place = (condition: string, given: readonly unknown[]) => {
    const next = given.values();
    return condition.replaceAll('?', () => `$${values.push(next.next().value)}`);
  };
  const set = conditions
    .filter(([, ...given]) => given.every((value) => value !== undefined))
    .map(([condition, ...given]) => place(condition, given));
  const where = set.length === 0 ? '' : `WHERE ${set.join(' AND ')}`;
  const text = `${head} ${where} ${tail} ${place('LIMIT ?', [limit ?? null])}`;
  return { statement: { text }, values };
}

export function statusesQuery({
  project,
  status,
  since,
  afterPrompt,
  order,
  limit,
}: RowQuery): Query {
  return select(
    `SELECT p.id AS project, r.id, r.name, r.status, r.status_raw, r.since, r.missing
     FROM evalwatch.project p
     JOIN evalwatch.record r ON r.project_key = p.project_key AND r.kind = 'prompt' AND NOT r.gone`,
    [
      project === undefined ? ['p.removed_at IS NULL'] : ['p.id = ?', project],
      ['r.status = ?', status],
      ['r.since >= ?', since],
      [
        '(-r.since, p.id, r.id) > (?, ?, ?)',
        afterPrompt && -afterPrompt.since,
        afterPrompt?.project,
        afterPrompt?.promptId,
      ],
    ],
    `ORDER BY r.since ${order === 'oldest' ? 'ASC' : 'DESC'}, p.id, r.id`,
    limit,
  );
}

const TRANSITION_COLUMNS =
  't.transition_id, t.at, p.id AS project, t.kind, t.record_id, t.from_status, t.to_status';

export function transitionsQuery({
  project,
  since,
  afterTransition,
  order,
  limit,
}: RowQuery): Query {
  const [direction, after] = order === 'oldest' ? ['ASC', '>'] : ['DESC', '<'];
  return select(
    `SELECT ${TRANSITION_COLUMNS}
     FROM evalwatch.transition t JOIN evalwatch.project p ON p.project_key = t.project_key`,
    [
      ['p.id = ?', project],
      ['t.at >= ?', since],
      [`t.transition_id ${after} ?`, afterTransition],
    ],
    `ORDER BY t.transition_id ${direction}`,
    limit,
  );
}

const FAILURE_COLUMNS = `f.transition_id, t.at, p.id AS project, t.record_id, t.record_name,
  f.settled_at, f.error_id, f.error_msg, f.error_msg_truncated, f.reason, f.cause_id AS cause`;

export function failuresQuery({ project, since, cause, afterTransition, limit }: RowQuery): Query {
  return select(
    `SELECT ${FAILURE_COLUMNS}
     FROM evalwatch.failure f
     JOIN evalwatch.transition t ON t.transition_id = f.transition_id
     JOIN evalwatch.project p ON p.project_key = t.project_key`,
    [
      ['p.id = ?', project],
      ['t.at >= ?', since],
      ['(f.cause_id = ? OR f.cause = ?) AND f.settled_at IS NOT NULL', cause, cause],
      ['f.transition_id < ?', afterTransition],
    ],
    'ORDER BY f.transition_id DESC',
    limit,
  );
}

/** Messages are read only of one failure of each cause in the answer. Failures that an older worker settled have no cause. */
export const CAUSES: Statement = {
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

/** Counts entries of an index up to the limit of each project. */
export const FAILURE_COUNTS: Statement = {
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

export const DURATIONS: Statement = {
  name: 'durations',
  text: `SELECT state.position, d.day, d.bucket, d.count
    FROM json_to_recordset($1) AS state(position integer, project text, status text)
    JOIN evalwatch.project p ON p.id = state.project
    JOIN evalwatch.prompt_duration d
      ON d.project_key = p.project_key AND d.status = state.status AND d.day >= $2`,
};

const MOVES_JOINED = `FROM evalwatch.transition t
  JOIN evalwatch.project p ON p.project_key = t.project_key
    AND CASE WHEN $1::text IS NULL THEN p.removed_at IS NULL ELSE p.id = $1 END`;

/** Selects the newest move that the limit leaves out. */
export const FIRST_LEFT_OUT: Statement = {
  text: `SELECT t.at ${MOVES_JOINED} WHERE t.kind = 'prompt' AND t.at >= $2
    ORDER BY t.at DESC LIMIT 1 OFFSET $3`,
};

/** The database counts, so that a busy day is not read row by row. */
export const MOVES: Statement = {
  text: `SELECT p.id AS project, ((t.at - $2) / $3)::integer AS span, t.from_status AS "from",
      t.to_status AS "to", count(*) AS count, count(*) FILTER (WHERE NOT r.gone) AS listed
    ${MOVES_JOINED}
    JOIN evalwatch.record r
      ON r.project_key = t.project_key AND r.kind = t.kind AND r.id = t.record_id
    WHERE t.kind = 'prompt' AND t.at > $4
    GROUP BY 1, 2, 3, 4`,
};

/** Selects the last numbers given to rows, perhaps by transactions that have not ended yet. */
export const EVENT_NUMBERS: Statement = {
  name: 'event_numbers',
  text: `SELECT t.last_value - (NOT t.is_called)::integer AS transition,
      s.last_value - (NOT s.is_called)::integer AS settlement
    FROM evalwatch.transition_transition_id_seq t CROSS JOIN evalwatch.settlement_settlement_id_seq s`,
};

/** Selects the transactions that write these tables now. Each holds its lock from before it takes a number until its end. */
export const EVENT_WRITERS: Statement = {
  name: 'event_writers',
  text: `SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
    WHERE relation IN ('evalwatch.transition'::regclass, 'evalwatch.settlement'::regclass)
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND granted`,
};

export const EVENT_TRANSITIONS: Statement = {
  name: 'event_transitions',
  text: `SELECT ${TRANSITION_COLUMNS}
    FROM evalwatch.transition t JOIN evalwatch.project p ON p.project_key = t.project_key
    WHERE t.transition_id > $1 AND t.transition_id <= $3 ORDER BY t.transition_id LIMIT $2`,
};

export const EVENT_SETTLEMENTS: Statement = {
  name: 'event_settlements',
  text: `SELECT s.settlement_id, ${FAILURE_COLUMNS}
    FROM evalwatch.settlement s
    JOIN evalwatch.failure f ON f.transition_id = s.transition_id
    JOIN evalwatch.transition t ON t.transition_id = f.transition_id
    JOIN evalwatch.project p ON p.project_key = t.project_key
    WHERE s.settlement_id > $1 AND s.settlement_id <= $3 ORDER BY s.settlement_id LIMIT $2`,
};

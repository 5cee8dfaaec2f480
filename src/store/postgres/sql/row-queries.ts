import type {
  FailureRow,
  RowQuery,
  StatusRow,
  TransitionRow,
} from '../../../monitor/ports/store.ts';
import {
  type FailureColumns,
  type StatusColumns,
  toFailureRow,
  toStatusRow,
  toTransitionRow,
  type TransitionColumns,
} from '../../rows.ts';
import type { Database } from '../database.ts';

/** Queries of the commands and the API (docs/specification.md#rows): the `StoreReader` methods of these names. */
export interface RowQueries {
  projects(): Promise<readonly string[]>;
  statuses(query: RowQuery): Promise<readonly StatusRow[]>;
  transitions(query: RowQuery): Promise<readonly TransitionRow[]>;
  failures(query: RowQuery): Promise<readonly FailureRow[]>;
}

export function createRowQueries(database: Pick<Database, 'query'>): RowQueries {
  return {
    projects: async () => {
      const statement = { name: 'projects', text: 'SELECT id FROM evalwatch.project ORDER BY id' };
      const rows = await database.query<{ readonly id: string }>(statement);
      return rows.map(({ id }) => id);
    },
    statuses: async (query) => {
      const { text, values } = statusesSql(query);
      return (await database.query<StatusColumns>({ text }, values)).map(toStatusRow);
    },
    transitions: async (query) => {
      const { text, values } = transitionsSql(query);
      return (await database.query<TransitionColumns>({ text }, values)).map(toTransitionRow);
    },
    failures: async (query) => {
      const { text, values } = failuresSql(query);
      return (await database.query<FailureColumns>({ text }, values)).map(toFailureRow);
    },
  };
}

interface Sql {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Builds a query from the conditions that have a value; each `?` stands for a value. */
function select(
  head: string,
  conditions: readonly (readonly [condition: string, ...values: readonly unknown[]])[],
  tail: string,
  limit: number | undefined,
): Sql {
  const values: unknown[] = [];
  const place = (condition: string, given: readonly unknown[]) => {
    const next = given.values();
    return condition.replaceAll('?', () => `$${values.push(next.next().value)}`);
  };
  const set = conditions
    .filter(([, ...given]) => given.every((value) => value !== undefined))
    .map(([condition, ...given]) => place(condition, given));
  const where = set.length === 0 ? '' : `WHERE ${set.join(' AND ')}`;
  return { text: `${head} ${where} ${tail} ${place('LIMIT ?', [limit ?? null])}`, values };
}

function statusesSql({ project, status, since, afterPrompt, order, limit }: RowQuery): Sql {
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

export const TRANSITION_COLUMNS =
  't.transition_id, t.at, p.id AS project, t.kind, t.record_id, t.from_status, t.to_status';

function transitionsSql({ project, since, afterTransition, order, limit }: RowQuery): Sql {
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

export const FAILURE_COLUMNS = `f.transition_id, t.at, p.id AS project, t.record_id, t.record_name,
  f.settled_at, f.error_id, f.error_msg, f.error_msg_truncated, f.reason, f.cause_id AS cause`;

function failuresSql({ project, since, cause, afterTransition, limit }: RowQuery): Sql {
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

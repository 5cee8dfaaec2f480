import type { ErrorInfo, NoErrorInfoReason } from '../domain/failure.ts';
import { isFor } from '../domain/receiver.ts';
import { MAX_GROUPED_FAILURES, type ProjectSnapshot } from '../monitor/ports/store.ts';
import {
  type CauseRow,
  type DueMoves,
  type Filter,
  type FinishedRow,
  MAX_TOLD,
  type MoveQuery,
  type MoveRow,
  type NotifyStore,
  type RecoveredRow,
  type StoredMessage,
  type WaitingRow,
} from '../notify/ports.ts';
import { FINISH_COLUMNS } from './reads.ts';
import { defined, type FinishColumns, type Selected, toFinishRow } from './rows.ts';
import type { Change, Db, Parameters, Write } from './sql.ts';

// What messages have told to whom (docs/specification.md#stored-messages), by one text for both engines.

/** The number of the last transition, or of the last finish for the kind that tells of them. */
const newest = (
  kind: string,
) => `CASE ${kind} WHEN 'finished' THEN (SELECT coalesce(max(finish_id), 0) FROM evalwatch.finish)
  ELSE (SELECT coalesce(max(transition_id), 0) FROM evalwatch.transition) END`;

const SUBSCRIBE: Change = {
  name: 'subscribe',
  first: {
    filtered: 'UPDATE evalwatch.receiver SET filter = :filter WHERE receiver = :receiver',
    added: `INSERT INTO evalwatch.told (project_key, receiver, kind, record_id, mark)
      SELECT p.project_key, r.receiver, r.kind, '', ${newest('r.kind')}
      FROM evalwatch.receiver r CROSS JOIN evalwatch.project p
      WHERE r.receiver = :receiver AND r.kind IN ('failed', 'completed', 'finished') AND p.id IN (SELECT value FROM json_each(:added))
      ON CONFLICT (project_key, receiver, kind, record_id) DO UPDATE SET mark = excluded.mark`,
  },
  last: `INSERT INTO evalwatch.receiver (receiver, kind, since, token, filter, seen_at)
    SELECT CAST(:receiver AS text), value, ${newest('value')}, gen_random_uuid(), CAST(:filter AS text), CAST(:at AS bigint)
    FROM json_each(:kinds) WHERE true
    ON CONFLICT (receiver, kind) DO NOTHING`,
};

/** The token is a fence: of two processes that read the same one, the second changes nothing. */
const COMPOSE: Change = {
  name: 'compose_message',
  first: {
    fenced: `UPDATE evalwatch.receiver SET token = gen_random_uuid()
      WHERE receiver = :receiver AND kind = :kind AND token = :token RETURNING receiver, kind`,
    changed: `SELECT p.project_key, r.receiver, r.kind, w.value::json ->> 'promptId' AS record_id,
        w.value::json ->> 'status' AS status, CAST(w.value::json ->> 'mark' AS bigint) AS mark
      FROM fenced r CROSS JOIN json_each(:told) w CROSS JOIN evalwatch.project p
      WHERE p.id = w.value::json ->> 'project'`,
    over: `DELETE FROM evalwatch.told WHERE (project_key, receiver, kind, record_id) IN (
      SELECT project_key, receiver, kind, record_id FROM changed WHERE mark IS NULL)`,
    told: `INSERT INTO evalwatch.told (project_key, receiver, kind, record_id, status, mark)
      SELECT project_key, receiver, kind, record_id, status, mark FROM changed WHERE mark IS NOT NULL
      ON CONFLICT (project_key, receiver, kind, record_id) DO UPDATE SET status = excluded.status, mark = excluded.mark`,
    stored: `INSERT INTO evalwatch.message (message_id, receiver, project_key, created_at, content)
      SELECT CAST(:id AS text), r.receiver, p.project_key, CAST(:createdAt AS bigint), CAST(:content AS text)
      FROM fenced r CROSS JOIN evalwatch.project p WHERE p.id = :project`,
  },
  last: 'SELECT receiver FROM fenced',
};

const FORGET: Change = {
  name: 'forget_message',
  last: 'DELETE FROM evalwatch.message WHERE message_id = :id AND receiver = :receiver',
};

/** The subscription `r`, a project `p`, and the last move that was told, at which those that are due begin. */
const SUBSCRIBED = `evalwatch.receiver r CROSS JOIN evalwatch.project p LEFT JOIN evalwatch.told w
  ON w.project_key = p.project_key AND w.receiver = r.receiver AND w.kind = r.kind AND w.record_id = ''`;
const POSITION = 'CASE WHEN w.mark > r.since THEN w.mark ELSE r.since END';
const IS_SUBSCRIPTION = 'r.receiver = :receiver AND r.kind = :kind';

const TRANSITIONS = { table: 'evalwatch.transition', number: 't.transition_id', index: '' };
/**
 * Where the moves `t` of a kind are, by which number, which of them are meant, with what index, and which failures `f` they wait
 * for: a finish for all of its project, because any of them can be of its prompts.
 */
const MOVES = {
  failed: {
    ...TRANSITIONS,
    condition: "t.kind = 'prompt' AND t.to_status = 'FAILED'",
    index: 'INDEXED BY transition_failed',
    waitsFor: 'f.transition_id = t.transition_id',
  },
  completed: {
    ...TRANSITIONS,
    condition: "t.kind = 'prompt' AND t.to_status = 'COMPLETED'",
    waitsFor: 'false',
  },
  finished: {
    table: 'evalwatch.finish',
    number: 't.finish_id',
    condition: 'true',
    index: '',
    waitsFor: 'f.project_key = t.project_key',
  },
} as const;

function firstMoves(kind: MoveQuery['kind']): string {
  const { table, number, condition, index } = MOVES[kind];
  return `SELECT found.project, t.at
    FROM (
      SELECT p.id AS project, (
        SELECT ${number} FROM ${table} t ${index}
        WHERE t.project_key = p.project_key AND ${condition} AND t.at >= :since AND ${number} > ${POSITION}
        ORDER BY ${number} LIMIT 1
      ) AS first
      FROM ${SUBSCRIBED} WHERE ${IS_SUBSCRIPTION} AND p.id IN (SELECT value FROM json_each(:projects))
    ) AS found JOIN ${table} t ON ${number} = found.first`;
}

function dueMoves(kind: MoveQuery['kind']): string {
  const { table, number, condition, waitsFor } = MOVES[kind];
  return `
WITH start AS (
  SELECT p.project_key, ${POSITION} AS position FROM ${SUBSCRIBED} WHERE ${IS_SUBSCRIPTION} AND p.id = :project
),
move AS MATERIALIZED (
  SELECT ${number} AS number, t.at, t.at > :waitsSince AND t.at <= :now
    AND EXISTS (SELECT 1 FROM evalwatch.failure f WHERE f.settled_at IS NULL AND ${waitsFor}) AS waits
  FROM start CROSS JOIN ${table} t
  WHERE t.project_key = start.project_key AND ${number} > start.position AND ${condition}
),
waiting AS (SELECT min(number) AS first, min(at) AS since FROM move WHERE waits)
SELECT waiting.since AS "waitsSince", due.*
FROM waiting CROSS JOIN (
  SELECT count(*) FILTER (WHERE at >= :since) AS count, min(number) FILTER (WHERE at >= :since) AS first,
    count(*) FILTER (WHERE at < :since) AS old, max(number) AS last
  FROM move WHERE number < coalesce((SELECT first FROM waiting), ${Number.MAX_SAFE_INTEGER})
) AS due`;
}

/** The moves `t` of prompts of a range. */
function movesIn(kind: 'failed' | 'completed'): string {
  return `SELECT t.record_id AS "promptId", t.record_name AS "promptName", t.at, f.cause_id AS cause,
      f.settled_at AS "settledAt", f.error_id, f.error_msg, f.reason
    FROM evalwatch.project p CROSS JOIN evalwatch.transition t
    LEFT JOIN evalwatch.failure f ON f.transition_id = t.transition_id
    WHERE p.id = :project AND t.project_key = p.project_key AND t.transition_id >= :first AND t.transition_id <= :last
      AND ${MOVES[kind].condition}
    ORDER BY t.transition_id LIMIT :limit`;
}

/** The most frequent causes of failures `f`. */
function causesOf(from: string): string {
  return `SELECT c.cause, c.count, f.error_id, f.error_msg, f.reason
  FROM (
    SELECT f.cause_id AS cause, count(*) AS count, max(f.transition_id) AS last
    FROM ${from} AND f.cause_id IS NOT NULL
    GROUP BY f.cause_id ORDER BY count(*) DESC, max(f.transition_id) DESC LIMIT :limit
  ) AS c JOIN evalwatch.failure f ON f.transition_id = c.last
  ORDER BY c.count DESC, c.last DESC`;
}

const CAUSES = {
  causes_in_range:
    causesOf(`evalwatch.project p CROSS JOIN evalwatch.failure f INDEXED BY failure_project
    WHERE p.id = :project AND f.project_key = p.project_key AND f.transition_id >= :first AND f.transition_id <= :last`),
  /**
   * Selects the causes of the prompts that were FAILED at a finish and have failed since the first move, of the last failures.
   * Records are looked up: PostgreSQL would join them in quadratic time before it has statistics.
   */
  causes_of_finish: causesOf(`(
      SELECT t.project_key, t.record_id, t.transition_id, t.at, e.label_id, e.at AS finished_at
      FROM evalwatch.finish e CROSS JOIN evalwatch.transition t INDEXED BY transition_failed
      WHERE e.finish_id = :finish AND t.project_key = e.project_key AND t.kind = 'prompt' AND t.to_status = 'FAILED'
        AND t.at >= e.started_at AND t.at <= e.at
      ORDER BY t.at DESC LIMIT ${MAX_GROUPED_FAILURES}
    ) AS t CROSS JOIN evalwatch.failure f
    WHERE f.transition_id = t.transition_id AND t.label_id = (
        SELECT CASE WHEN r.since = t.at OR r.since > t.finished_at THEN r.experiment END
        FROM evalwatch.record r WHERE r.project_key = t.project_key AND r.kind = 'prompt' AND r.id = t.record_id)`),
};

const FINISHES = `SELECT ${FINISH_COLUMNS}
  FROM evalwatch.project p CROSS JOIN evalwatch.finish f CROSS JOIN evalwatch.label l
  WHERE p.id = :project AND f.project_key = p.project_key AND f.finish_id >= :first AND f.finish_id <= :last
    AND l.label_id = f.label_id
  ORDER BY f.finish_id LIMIT :limit`;

/** What a receiver was told of stuck prompts: rows `w`. */
const TOLD_STUCK = "w.receiver = :receiver AND w.kind = 'stuck'";

const WAITING = `SELECT r.id AS "promptId", r.name AS "promptName", r.status, r.since
  FROM evalwatch.project p CROSS JOIN evalwatch.record r INDEXED BY record_waiting
  WHERE p.id = :project AND r.project_key = p.project_key AND r.kind = 'prompt' AND r.status = :status
    AND NOT r.gone AND r.status IN ('PENDING', 'RUNNING')
    AND NOT EXISTS (
      SELECT 1 FROM evalwatch.told w WHERE w.project_key = r.project_key AND ${TOLD_STUCK} AND w.record_id = r.id)
  ORDER BY r.since LIMIT :limit`;

/** Selects also how many prompts were told to be stuck, over or not; counted once, as it depends on no row. */
const RECOVERED = `SELECT w.record_id AS "promptId", r.name AS "promptName", w.status, w.mark AS since,
    CASE WHEN NOT r.gone THEN r.status END AS "nextStatus", CASE WHEN NOT r.gone THEN r.since END AS "nextSince",
    (SELECT count(*) FROM evalwatch.project p CROSS JOIN evalwatch.told w
      WHERE p.id = :project AND w.project_key = p.project_key AND ${TOLD_STUCK}) AS told
  FROM evalwatch.project p CROSS JOIN evalwatch.told w
  LEFT JOIN evalwatch.record r ON r.project_key = w.project_key AND r.kind = 'prompt' AND r.id = w.record_id
  WHERE p.id = :project AND w.project_key = p.project_key AND ${TOLD_STUCK}
    AND (r.id IS NULL OR r.gone OR r.status <> w.status OR r.since <> w.mark)
  ORDER BY w.mark, w.record_id LIMIT :limit`;

interface OutcomeColumns {
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly reason: NoErrorInfoReason | null;
}

interface SubscribedColumns {
  readonly kind: string;
  readonly filter: string;
}

interface SinceColumns {
  readonly id: string;
  readonly since: number;
}

type DueColumns = Omit<DueMoves, 'moves' | 'finishes' | 'causes'> & {
  readonly first: number | undefined;
};
type MoveColumns = Selected<Omit<MoveRow, 'errorInfo' | 'reason'>> &
  OutcomeColumns & { readonly settledAt: number | null };
type CauseColumns = Omit<CauseRow, 'errorInfo'> & OutcomeColumns;

/** Notifications in the store of either engine. */
export class Notifications implements NotifyStore {
  readonly snapshot: NotifyStore['snapshot'];
  readonly #db: Db;
  readonly #write: Write;

  /** `snapshot` returns what is in memory of a project. */
  constructor(db: Db, write: Write, snapshot: (project: string) => ProjectSnapshot | undefined) {
    this.#db = db;
    this.#write = write;
    this.snapshot = snapshot;
  }

  subscribe: NotifyStore['subscribe'] = async (subscriber, at, configured = []) => {
    const { name: receiver, on, teams, projects } = subscriber;
    const filter = JSON.stringify({
      teams: teams && [...teams],
      projects: projects && [...projects],
    });
    const text = 'SELECT r.kind, r.filter FROM evalwatch.receiver r WHERE r.receiver = :receiver';
    const rows = await this.#db.read<SubscribedColumns>('subscriptions', text, { receiver });
    const before = rows[0]?.filter ?? filter;
    if (before === filter && on.every((kind) => rows.some((row) => row.kind === kind))) return;
    const [old, next] = [readFilter(before), readFilter(filter)];
    const added = Array.from(configured).filter((each) => isFor(next, each) && !isFor(old, each));
    const ids = added.map(({ id }) => id);
    const values = { kinds: JSON.stringify(on), filter, added: JSON.stringify(ids) };
    await this.#write(SUBSCRIBE, { receiver, at, ...values });
  };

  token: NotifyStore['token'] = async ({ receiver, kind }) => {
    const text = `SELECT r.token FROM evalwatch.receiver r WHERE ${IS_SUBSCRIPTION}`;
    const asked: Parameters = { receiver, kind };
    const [row] = await this.#db.read<{ readonly token: string }>('subscription', text, asked);
    return row?.token;
  };

  compose: NotifyStore['compose'] = async ({ receiver, kind, token, told, message }) => {
    const values = {
      id: message?.id,
      project: message && told[0]?.project,
      createdAt: message && Date.parse(message.timestamp),
      content: message && JSON.stringify(message),
      told: JSON.stringify(told),
    };
    return (await this.#write(COMPOSE, { receiver, kind, token, ...values })).length > 0;
  };

  messages: NotifyStore['messages'] = async (receiver) => {
    const text = `SELECT p.id AS project, m.created_at AS "createdAt", m.content
      FROM evalwatch.message m JOIN evalwatch.project p ON p.project_key = m.project_key
      WHERE m.receiver = :receiver ORDER BY m.created_at, m.message_id`;
    const rows = await this.#db.read<Omit<StoredMessage, 'message'> & { readonly content: string }>(
      'messages',
      text,
      { receiver },
    );
    return rows.map(({ content, ...row }) => ({ ...row, message: JSON.parse(content) }));
  };

  forget: NotifyStore['forget'] = async (receiver, id) => {
    await this.#write(FORGET, { receiver, id });
  };

  firstMoves: NotifyStore['firstMoves'] = async (of, projects) => {
    const values = { ...of, projects: JSON.stringify(projects) };
    return await this.#db.read(`first_moves_${of.kind}`, firstMoves(of.kind), values);
  };

  dueMoves: NotifyStore['dueMoves'] = async (query) => {
    const { kind, project, maxMoves, maxCauses } = query;
    const [found] = await this.#db.read<Selected<DueColumns>>(`due_moves_${kind}`, dueMoves(kind), {
      ...query,
    });
    const none = { count: 0, old: 0, first: undefined, last: undefined, waitsSince: undefined };
    const { first, ...due }: DueColumns = found ? defined<DueColumns>(found) : none;
    const nothing = { ...due, moves: [], finishes: [], causes: [] };
    if (first === undefined) return nothing;
    const range = { project, first, last: due.last };
    const shown = { ...range, limit: maxMoves };
    if (kind === 'finished')
      return { ...nothing, finishes: await this.#finishes(shown, maxCauses) };
    const moves = await this.#moves(kind, shown);
    if (kind === 'completed') return { ...nothing, moves };
    const causes = await this.#causes('causes_in_range', { ...range, limit: maxCauses });
    return { ...nothing, moves, causes };
  };

  waiting: NotifyStore['waiting'] = async (receiver, project, status) => {
    const asked = { receiver, project, status, limit: MAX_TOLD + 1 };
    const rows = await this.#db.read<Selected<WaitingRow>>('waiting', WAITING, asked);
    return rows.map((row) => defined<WaitingRow>(row));
  };

  recovered: NotifyStore['recovered'] = async (receiver, project) => {
    const asked = { receiver, project, limit: MAX_TOLD };
    const rows = await this.#db.read<Selected<RecoveredRow> & { readonly told: number }>(
      'recovered',
      RECOVERED,
      asked,
    );
    const areOthersTold = rows[0] === undefined || rows[0].told > rows.length;
    return { rows: rows.map((row) => defined<RecoveredRow>(row)), areOthersTold };
  };

  toldProjects: NotifyStore['toldProjects'] = async ({ receiver, kind }) => {
    const text = `SELECT p.id, min(w.mark) AS since
      FROM evalwatch.told w JOIN evalwatch.project p ON p.project_key = w.project_key
      WHERE w.receiver = :receiver AND w.kind = :kind GROUP BY p.id`;
    const asked: Parameters = { receiver, kind };
    const rows = await this.#db.read<SinceColumns>('told_projects', text, asked);
    return new Map(rows.map(({ id, since }) => [id, since]));
  };

  async #moves(kind: 'failed' | 'completed', range: Parameters): Promise<readonly MoveRow[]> {
    const rows = await this.#db.read<MoveColumns>(`moves_${kind}`, movesIn(kind), range);
    return rows.map(({ promptId, promptName, at, cause, settledAt, ...outcome }) => ({
      promptId,
      promptName: promptName ?? undefined,
      at,
      errorInfo: settledAt === null ? undefined : errorInfoOf(outcome),
      reason: outcome.reason ?? undefined,
      cause: cause ?? undefined,
    }));
  }

  async #finishes(range: Parameters, maxCauses: number): Promise<readonly FinishedRow[]> {
    const rows = await this.#db.read<FinishColumns>('finishes', FINISHES, range);
    const found: FinishedRow[] = [];
    for (const row of rows) {
      const asked = { finish: row.finishId, limit: maxCauses };
      const causes = row.FAILED > 0 ? await this.#causes('causes_of_finish', asked) : [];
      found.push({ ...toFinishRow(row), causes });
    }
    return found;
  }

  async #causes(name: keyof typeof CAUSES, asked: Parameters): Promise<readonly CauseRow[]> {
    const rows = await this.#db.read<CauseColumns>(name, CAUSES[name], asked);
    return rows.map((row) => ({ cause: row.cause, count: row.count, errorInfo: errorInfoOf(row) }));
  }
}

function readFilter(text: string): Filter {
  const filter: { readonly teams?: string[]; readonly projects?: string[] } = JSON.parse(text);
  const { teams, projects } = filter;
  return { teams: teams && new Set(teams), projects: projects && new Set(projects) };
}

function errorInfoOf({ error_id, error_msg, reason }: OutcomeColumns): ErrorInfo | undefined {
  return reason === null ? { error_id, error_msg } : undefined;
}

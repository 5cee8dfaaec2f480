import { NO_PROMPTS, type PromptCounts } from '../domain/experiment.ts';
import type { DurationCount } from '../domain/limits.ts';
import { LABELS, type Labels } from '../domain/record.ts';
import { PROMPT_STATUSES } from '../domain/status.ts';
import { cleanUnicode } from '../domain/visible.ts';
import {
  type CauseList,
  type CauseQuery,
  type ExperimentQuery,
  type ExperimentRow,
  type FailureCount,
  type FailureCountQuery,
  type FailureRow,
  MAX_GROUPED_FAILURES,
  type MoveCount,
  type MoveHistory,
  type MoveQuery,
  type ProjectState,
  type EventPosition,
  type RecordedEvents,
  type RowQuery,
  type StateDurations,
  type StatusRow,
  type StoreReader,
  type StoreSnapshot,
  type TransitionRow,
} from '../monitor/ports/store.ts';
import { readFigures } from './projects.ts';
import {
  type CauseColumns,
  defined,
  type ExperimentColumns,
  type FailureColumns,
  type FinishColumns,
  toCauseList,
  toExperimentRow,
  toFailureRow,
  toFinishRow,
  type Selected,
} from './rows.ts';
import type { Db, Parameters } from './sql.ts';

/** Joins the conditions that are set. */
function whereAll(...conditions: readonly (string | false | undefined)[]): string {
  const set = conditions.filter((each) => typeof each === 'string');
  return set.length === 0 ? '' : `WHERE ${set.join(' AND ')}`;
}

function limited({ limit }: { readonly limit?: number | undefined }): string {
  return limit === undefined ? '' : 'LIMIT :limit';
}

/** Selects a label of a record `r`. Joined, it would be read of every row before those of the limit are known. */
function labelText(label: keyof Labels): string {
  return `(SELECT l.text FROM evalwatch.label l WHERE l.label_id = r.${label}) AS ${label}`;
}

/**
 * The record of a transition `t`, for a query that is a value: it is looked up. PostgreSQL can make a join of IN and EXISTS, and
 * then reads all transitions of a project for each of its records, if it expects few of them.
 */
const RECORD_OF_TRANSITION = `evalwatch.record r
  WHERE r.project_key = t.project_key AND r.kind = t.kind AND r.id = t.record_id`;

/** The experiment that the record of a transition `t` has now. */
const EXPERIMENT_OF_TRANSITION = `(
  SELECT (SELECT l.text FROM evalwatch.label l WHERE l.label_id = r.experiment)
  FROM ${RECORD_OF_TRANSITION}) AS experiment`;

const TRANSITION_COLUMNS = `t.transition_id AS "transitionId", t.at, p.id AS project, t.kind, t.record_id AS id,
  t.from_status AS "from", t.to_status AS "to", ${EXPERIMENT_OF_TRANSITION}`;

const FAILURE_COLUMNS = `f.transition_id AS "transitionId", t.at, p.id AS project, t.record_id AS "promptId",
  t.record_name AS "promptName", f.settled_at, f.error_id, f.error_msg, f.error_msg_truncated, f.reason,
  f.cause_id AS cause, ${EXPERIMENT_OF_TRANSITION}`;

/** What the row of an experiment `e` has itself. */
export const OWN_EXPERIMENT_COLUMNS = `e.label_id AS key,
  e.pending AS "PENDING", e.running AS "RUNNING", e.completed AS "COMPLETED", e.failed AS "FAILED", e.unknown AS "UNKNOWN",
  e.started_at AS "startedAt", e.moved_at AS "movedAt", e.ended_at AS "endedAt", e.finished_at AS "finishedAt"`;

/** The columns of an experiment `e`, which is joined with its project `p` and its name `l`. */
export const EXPERIMENT_COLUMNS = `p.id AS project, l.text AS experiment, ${OWN_EXPERIMENT_COLUMNS}`;

/** Whether an experiment `e` runs, or has ended after a move and is not finished. */
const IS_UNFINISHED = `e.finished_at IS NULL
  AND (e.pending + e.running > 0 OR e.started_at IS NOT NULL AND e.completed + e.failed + e.unknown > 0)`;

/** The columns of a finish `f`, which is joined with its project `p` and its experiment `l`. */
export const FINISH_COLUMNS = `f.finish_id AS "finishId", f.at, p.id AS project, l.text AS experiment,
  f.completed AS "COMPLETED", f.failed AS "FAILED", f.unknown AS "UNKNOWN", f.started_at AS "startedAt", f.ended_at AS "endedAt"`;

/** Restricts a query to one project, or to the configured ones. The second value belongs to the name of its text. */
function scope(project: string | undefined): readonly [condition: string, name: string] {
  return project === undefined ? ['p.removed_at IS NULL', ''] : ['p.id = :project', '_of_project'];
}

type LabelScope = Labels & { readonly project?: string | undefined };

/** Labels as they are stored. */
function labelsOf(query: Labels): Parameters {
  return Object.fromEntries(LABELS.map((label) => [label, cleanUnicode(query[label] ?? '')]));
}

/** Selects the number of a label, once for all rows. */
function labelNumbers(parameter: keyof Labels, project: string | undefined): string {
  const ofProject =
    'n.project_key = (SELECT project_key FROM evalwatch.project WHERE id = :project)';
  return `(SELECT n.label_id FROM evalwatch.label n
    ${whereAll(project !== undefined && ofProject, `n.text = :${parameter}`)})`;
}

/** Restricts a query to records `r` with these labels. */
function labelConditions(query: LabelScope): readonly string[] {
  return LABELS.filter((label) => query[label] !== undefined).map((label) =>
    query[label] === ''
      ? `r.${label} IS NULL`
      : `r.${label} IN ${labelNumbers(label, query.project)}`,
  );
}

/** Restricts a query to transitions `t` of such prompts. */
function ofLabels(query: LabelScope): string | false {
  const conditions = labelConditions(query);
  if (conditions.length === 0) return false;
  return `t.kind = 'prompt' AND (SELECT ${conditions.join(' AND ')} FROM ${RECORD_OF_TRANSITION})`;
}

/** Restricts a query to transitions `t` of a time and of one prompt. */
function ofHistory({ since, until, promptId }: RowQuery): readonly (string | false)[] {
  return [
    since !== undefined && 't.at >= :since',
    until !== undefined && 't.at < :until',
    promptId !== undefined && "t.kind = 'prompt' AND t.record_id = :promptId",
  ];
}

/**
 * The reading methods of a store, by one text for both engines; each engine adds how it reads events. CROSS JOIN makes SQLite
 * read the tables in this order.
 */
export class Reads implements Omit<StoreReader, 'events' | 'close'> {
  protected readonly db: Db;

  constructor(db: Db) {
    this.db = db;
  }

  /** Ids of all stored projects. */
  async projects(): Promise<readonly string[]> {
    const text = 'SELECT id FROM evalwatch.project ORDER BY id';
    const rows = await this.db.read<{ readonly id: string }>('projects', text);
    return rows.map(({ id }) => id);
  }

  async snapshot(project?: string): Promise<StoreSnapshot> {
    const [figures, backlog] = await Promise.all([
      readFigures(this.db, project === undefined ? undefined : [project]),
      this.readBacklog(),
    ]);
    return { projects: figures.map(({ snapshot }) => snapshot), backlog };
  }

  async statuses(query: RowQuery): Promise<readonly StatusRow[]> {
    const { project, promptId, status, since, afterPrompt, order, limit } = query;
    const isWaiting = status === 'PENDING' || status === 'RUNNING';
    const text = `SELECT p.id AS project, r.id AS "promptId", r.name AS "promptName", r.status,
        r.status_raw AS "statusRaw", r.since, r.missing,
        ${LABELS.map(labelText).join(', ')}
      FROM evalwatch.project p
      JOIN evalwatch.record r ON r.project_key = p.project_key AND r.kind = 'prompt' AND NOT r.gone
      ${whereAll(
        project === undefined ? 'p.removed_at IS NULL' : 'p.id = :project',
        promptId !== undefined && 'r.id = :promptId',
        status !== undefined && 'r.status = :status',
        // The condition of an index.
        isWaiting && "r.status IN ('PENDING', 'RUNNING')",
        since !== undefined && 'r.since >= :since',
        ...labelConditions(query),
        afterPrompt && '(-r.since, p.id, r.id) > (:afterSince, :afterProject, :afterId)',
      )}
      ORDER BY r.since ${order === 'oldest' ? 'ASC' : 'DESC'}, p.id, r.id ${limited(query)}`;
    const rows = await this.db.read<Selected<StatusRow>>('', text, {
      project,
      promptId: promptId && cleanUnicode(promptId),
      status,
      since,
      ...labelsOf(query),
      limit,
      ...(afterPrompt && {
        afterSince: -afterPrompt.since,
        afterProject: afterPrompt.project,
        afterId: afterPrompt.promptId,
      }),
    });
    return rows.map((row) => defined<StatusRow>(row));
  }

  async transitions(query: RowQuery): Promise<readonly TransitionRow[]> {
    const { project, since, until, promptId, afterTransition, order, limit } = query;
    const [direction, after] = order === 'oldest' ? ['ASC', '>'] : ['DESC', '<'];
    const text = `SELECT ${TRANSITION_COLUMNS}
      FROM evalwatch.transition t JOIN evalwatch.project p ON p.project_key = t.project_key
      ${whereAll(
        project !== undefined && 'p.id = :project',
        ...ofHistory(query),
        ofLabels(query),
        afterTransition !== undefined && `t.transition_id ${after} :afterTransition`,
      )}
      ORDER BY t.transition_id ${direction} ${limited(query)}`;
    const rows = await this.db.read<Selected<TransitionRow>>('', text, {
      project,
      since,
      until,
      promptId: promptId && cleanUnicode(promptId),
      ...labelsOf(query),
      afterTransition,
      limit,
    });
    return rows.map((row) => defined<TransitionRow>(row));
  }

  async failures(query: RowQuery): Promise<readonly FailureRow[]> {
    const { project, since, until, promptId, cause, afterTransition, limit } = query;
    // Columns are read of the rows in the answer only.
    const text = `WITH found AS MATERIALIZED (
        SELECT f.transition_id FROM evalwatch.failure f
        JOIN evalwatch.transition t ON t.transition_id = f.transition_id
        JOIN evalwatch.project p ON p.project_key = t.project_key
      ${whereAll(
        // The condition of an index.
        project !== undefined && "p.id = :project AND t.kind = 'prompt' AND t.to_status = 'FAILED'",
        ...ofHistory(query),
        ofLabels(query),
        cause !== undefined &&
          '(f.cause_id = :cause OR f.cause = :cause) AND f.settled_at IS NOT NULL',
        afterTransition !== undefined && 'f.transition_id < :afterTransition',
      )}
      ORDER BY f.transition_id DESC ${limited(query)})
      SELECT ${FAILURE_COLUMNS}
      FROM found CROSS JOIN evalwatch.failure f CROSS JOIN evalwatch.transition t CROSS JOIN evalwatch.project p
      WHERE f.transition_id = found.transition_id AND t.transition_id = f.transition_id
        AND p.project_key = t.project_key
      ORDER BY f.transition_id DESC`;
    const rows = await this.db.read<FailureColumns>('', text, {
      project,
      since,
      until,
      promptId: promptId && cleanUnicode(promptId),
      ...labelsOf(query),
      cause,
      afterTransition,
      limit,
    });
    return rows.map(toFailureRow);
  }

  async unfinishedExperiments(
    projects: readonly string[],
    limit: number,
  ): Promise<readonly ExperimentRow[]> {
    // Without a sort: the service may have invented many.
    const text = `
WITH shown AS MATERIALIZED (
  SELECT p.project_key, p.id, (
    SELECT e.label_id FROM evalwatch.experiment e WHERE e.project_key = p.project_key AND ${IS_UNFINISHED}
    ORDER BY e.label_id DESC LIMIT 1 OFFSET :others
  ) AS first
  FROM evalwatch.project p WHERE p.id IN (SELECT value FROM json_each(:projects))
)
SELECT ${EXPERIMENT_COLUMNS}
FROM shown p CROSS JOIN evalwatch.experiment e CROSS JOIN evalwatch.label l
WHERE e.project_key = p.project_key AND e.label_id >= coalesce(p.first, 0) AND ${IS_UNFINISHED} AND l.label_id = e.label_id
ORDER BY e.label_id DESC`;
    const asked = { projects: JSON.stringify(projects), others: limit - 1 };
    const rows = await this.db.read<ExperimentColumns>('unfinished_experiments', text, asked);
    return rows.map(toExperimentRow);
  }

  async experiments(query: ExperimentQuery): Promise<readonly ExperimentRow[]> {
    const { project, experiment, since, after, limit } = query;
    const order = 'ORDER BY coalesce(e.moved_at, 0) DESC, e.label_id DESC';
    // Names are read of the rows in the answer only.
    const text = `WITH found AS MATERIALIZED (
        SELECT e.project_key, e.label_id FROM evalwatch.project p CROSS JOIN evalwatch.experiment e
        ${whereAll(
          scope(project)[0],
          'e.project_key = p.project_key',
          'e.pending + e.running + e.completed + e.failed + e.unknown > 0',
          experiment !== undefined && `e.label_id IN ${labelNumbers('experiment', project)}`,
          since !== undefined && 'e.moved_at >= :since',
          // A client can send any number.
          after &&
            '(coalesce(e.moved_at, 0), e.label_id) < (:afterMovedAt, CAST(:afterKey AS bigint))',
        )}
        ${order} ${limited(query)})
      SELECT ${EXPERIMENT_COLUMNS}
      FROM found CROSS JOIN evalwatch.experiment e CROSS JOIN evalwatch.label l CROSS JOIN evalwatch.project p
      WHERE e.project_key = found.project_key AND e.label_id = found.label_id AND l.label_id = e.label_id
        AND p.project_key = e.project_key
      ${order}`;
    const rows = await this.db.read<ExperimentColumns>('', text, {
      project,
      experiment: experiment && cleanUnicode(experiment),
      since,
      limit,
      ...(after && { afterMovedAt: after.movedAt ?? 0, afterKey: after.key }),
    });
    return rows.map(toExperimentRow);
  }

  /** Subtracts the counts of all experiments from those of the project. */
  async withoutExperiment(project: string): Promise<PromptCounts> {
    const columns = PROMPT_STATUSES.map(
      (status) =>
        `CAST(coalesce(CAST(p.prompts -> 'counts' ->> '${status}' AS integer), 0)
          - coalesce(sum(e.${status.toLowerCase()}), 0) AS integer) AS "${status}"`,
    );
    const [counts = NO_PROMPTS] = await this.db.read<PromptCounts>(
      'without_experiment',
      `SELECT ${columns.join(', ')}
      FROM evalwatch.project p LEFT JOIN evalwatch.experiment e ON e.project_key = p.project_key
      WHERE p.id = :project GROUP BY p.project_key`,
      { project },
    );
    return counts;
  }

  /** At most `limit` transitions, settled failures and finishes after one position and up to another. */
  protected async readEvents(
    after: EventPosition,
    end: EventPosition,
    limit: number,
  ): Promise<Omit<RecordedEvents, 'end'>> {
    const [transitions, settled, finishes] = await Promise.all([
      this.db.read<Selected<TransitionRow>>(
        'event_transitions',
        `SELECT ${TRANSITION_COLUMNS}
        FROM evalwatch.transition t CROSS JOIN evalwatch.project p
        WHERE p.project_key = t.project_key AND t.transition_id > :after AND t.transition_id <= :end
        ORDER BY t.transition_id LIMIT :limit`,
        { after: after.transition, end: end.transition, limit },
      ),
      this.db.read<FailureColumns & { readonly settlementId: number }>(
        'event_settlements',
        `SELECT s.settlement_id AS "settlementId", ${FAILURE_COLUMNS}
        FROM evalwatch.settlement s CROSS JOIN evalwatch.failure f CROSS JOIN evalwatch.transition t
        CROSS JOIN evalwatch.project p
        WHERE f.transition_id = s.transition_id AND t.transition_id = f.transition_id
          AND p.project_key = t.project_key AND s.settlement_id > :after AND s.settlement_id <= :end
        ORDER BY s.settlement_id LIMIT :limit`,
        { after: after.settlement, end: end.settlement, limit },
      ),
      this.db.read<FinishColumns>(
        'event_finishes',
        `SELECT ${FINISH_COLUMNS}
        FROM evalwatch.finish f CROSS JOIN evalwatch.project p CROSS JOIN evalwatch.label l
        WHERE p.project_key = f.project_key AND l.label_id = f.label_id
          AND f.finish_id > :after AND f.finish_id <= :end
        ORDER BY f.finish_id LIMIT :limit`,
        { after: after.finish, end: end.finish, limit },
      ),
    ]);
    return {
      transitions: transitions.map((row) => defined<TransitionRow>(row)),
      settled: settled.map((row) => ({ ...toFailureRow(row), settlementId: row.settlementId })),
      finishes: finishes.map(toFinishRow),
    };
  }

  /** Messages are read only of one failure of each cause in the answer. */
  async causes(query: CauseQuery): Promise<CauseList> {
    const { project, since, limit, maxFailures = MAX_GROUPED_FAILURES } = query;
    const [condition, scopeName] = scope(project);
    const labels = ofLabels(query);
    const name = labels === false ? `causes${scopeName}` : '';
    const text = `
WITH shown AS MATERIALIZED (SELECT p.project_key FROM evalwatch.project p WHERE ${condition}),
newest AS MATERIALIZED (
  SELECT t.project_key, t.transition_id, t.at FROM shown CROSS JOIN evalwatch.transition t
  WHERE t.project_key = shown.project_key AND t.kind = 'prompt' AND t.to_status = 'FAILED' AND t.at >= :since
  ${labels === false ? '' : `AND ${labels}`}
  ORDER BY t.at DESC LIMIT :maxFailures
),
counted AS MATERIALIZED (
  SELECT f.cause_id AS cause, count(*) AS count, count(DISTINCT t.project_key) AS projects,
    min(t.at) AS "firstAt", max(t.at) AS "lastAt", max(t.transition_id) AS "transitionId"
  FROM newest t CROSS JOIN evalwatch.failure f INDEXED BY failure_project
  WHERE f.project_key = t.project_key AND f.transition_id = t.transition_id AND f.cause_id IS NOT NULL
  GROUP BY f.cause_id
),
ranked AS (
  SELECT *, count(*) OVER () AS total_causes, CAST(sum(count) OVER () AS bigint) AS total_count FROM counted
  ORDER BY count DESC, "lastAt" DESC, cause LIMIT :limit
)
SELECT ranked.*, f.error_id, f.error_msg, f.reason,
  NOT EXISTS (
    SELECT 1 FROM shown JOIN evalwatch.transition t ON t.transition_id = (
      SELECT min(old.transition_id) FROM evalwatch.failure old
      WHERE old.cause_id = ranked.cause AND old.project_key = shown.project_key AND old.settled_at IS NOT NULL
    )
    WHERE t.at < :since
  ) AS is_new
FROM ranked JOIN evalwatch.failure f ON f.transition_id = ranked."transitionId"
ORDER BY ranked.count DESC, ranked."lastAt" DESC, ranked.cause`;
    const parameters = { project, since, limit, maxFailures, ...labelsOf(query) };
    return toCauseList(await this.db.read<CauseColumns>(name, text, parameters));
  }

  /** Counts entries of an index up to the limit of each project. */
  async failureCounts({
    project,
    since,
    limitPerProject,
  }: FailureCountQuery): Promise<readonly FailureCount[]> {
    const [condition, name] = scope(project);
    const text = `
WITH counted AS MATERIALIZED (
  SELECT p.id AS project, (
    SELECT count(*) FROM (
      SELECT 1 FROM evalwatch.transition t
      WHERE t.project_key = p.project_key AND t.kind = 'prompt' AND t.to_status = 'FAILED' AND t.at >= :since
      LIMIT :limitPerProject
    ) AS limited
  ) AS count
  FROM evalwatch.project p WHERE ${condition}
)
SELECT project, count FROM counted WHERE count > 0`;
    return await this.db.read(`failure_counts${name}`, text, { project, since, limitPerProject });
  }

  /** The database counts, so that a busy day is not read row by row. */
  async moves({ project, since, spanMs, limit }: MoveQuery): Promise<MoveHistory> {
    const [condition] = scope(project);
    const from =
      'FROM evalwatch.transition t JOIN evalwatch.project p ON p.project_key = t.project_key';
    const where = `WHERE ${condition} AND t.kind = 'prompt'`;
    const [leftOut] = await this.db.read<{ readonly at: number }>(
      '',
      `SELECT t.at ${from} ${where} AND t.at >= :since ORDER BY t.at DESC LIMIT 1 OFFSET :limit`,
      { project, since, limit },
    );
    const after = leftOut?.at ?? since - 1;
    const moves = await this.db.read<MoveCount>(
      '',
      `SELECT p.id AS project, CAST((t.at - :since) / :spanMs AS integer) AS span,
        t.from_status AS "from", t.to_status AS "to", count(*) AS count,
        count(*) FILTER (WHERE (SELECT NOT r.gone FROM ${RECORD_OF_TRANSITION})) AS listed
      ${from} ${where} AND t.at > :after
      GROUP BY 1, 2, 3, 4`,
      { project, since, spanMs, after },
    );
    return { since: leftOut?.at ?? since, moves };
  }

  async durations(
    states: readonly ProjectState[],
    firstDay: number,
  ): Promise<readonly StateDurations[]> {
    if (states.length === 0) return [];
    const values = states.map(
      (_, n) => `(${n}, CAST(:project${n} AS text), CAST(:status${n} AS text))`,
    );
    const rows = await this.db.read<DurationCount & { readonly position: number }>(
      '',
      `WITH asked (position, project, status) AS (VALUES ${values.join(', ')})
      SELECT asked.position, d.day, d.bucket, d.count
      FROM asked CROSS JOIN evalwatch.project p CROSS JOIN evalwatch.prompt_duration d
      WHERE p.id = asked.project
        AND d.project_key = p.project_key AND d.status = asked.status AND d.day >= :firstDay`,
      Object.fromEntries([
        ['firstDay', firstDay],
        ...states.map(({ project }, n) => [`project${n}`, project] as const),
        ...states.map(({ status }, n) => [`status${n}`, status] as const),
      ]),
    );
    const counts = Map.groupBy(rows, ({ position }) => position);
    return states.map((state, position) => ({
      ...state,
      counts: (counts.get(position) ?? []).map(({ day, bucket, count }) => ({
        day,
        bucket,
        count,
      })),
    }));
  }

  protected async readBacklog(): Promise<StoreSnapshot['backlog']> {
    const [pending] = await this.db.read<BacklogColumns>('backlog', BACKLOG);
    return toBacklog(pending);
  }
}

/** Selects how many failures have no logged error_info yet, and since when the first one. */
export const BACKLOG = `SELECT pending.count,
    (SELECT at FROM evalwatch.transition WHERE transition_id = pending.oldest) AS oldest_at
  FROM (SELECT count(*) AS count, min(transition_id) AS oldest
        FROM evalwatch.failure WHERE settled_at IS NULL) AS pending`;

export interface BacklogColumns {
  readonly count: number;
  readonly oldest_at: number | null;
}

export function toBacklog(pending: BacklogColumns | undefined): StoreSnapshot['backlog'] {
  return { count: pending?.count ?? 0, oldestAt: pending?.oldest_at ?? undefined };
}

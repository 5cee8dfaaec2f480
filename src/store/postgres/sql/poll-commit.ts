import type { Kind, Status } from '../../../domain/status.ts';
import type { CommittedTransition, PollCommit } from '../../../monitor/ports/store.ts';
import { LabelPlaces } from '../../labels.ts';
import type { Outcome } from '../../outcome.ts';
import { toOwnExperimentColumns, toHealthColumns } from '../../rows.ts';
import { builtStatement, type Statement } from '../database.ts';

export interface CommitRow {
  /** In the order of the poll's transitions. */
  readonly transition_ids: readonly number[] | null;
  /** In the order of the experiments. Absent without any that finish. */
  readonly finish_ids?: readonly number[] | null;
  /** In the answer of {@link MADE}. */
  readonly is_made?: boolean;
}

/** A statement that commits a poll. */
export interface PollStatement {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** The token of the project that the poll was computed from, and the next one. */
interface CommitTokens {
  readonly token: string;
  readonly next: string;
}

/** Parts of a commit that most commits do not need; each would cost the start of its plan. */
interface CommitParts {
  readonly hasNew: boolean;
  readonly hasFailures: boolean;
  readonly hasDurations: boolean;
  readonly hasExperiments: boolean;
  readonly hasFinishes: boolean;
}

/** New records are inserted, not upserted, because an upsert would lock each row first. */
const ADDED = `
added AS (
  INSERT INTO evalwatch.record
    (project_key, kind, id, name, since, missing, gone, status, status_raw, timestamp,
     experiment, dataset, metric)
  SELECT project_key, kind, id, name, since, missing, gone, status, status_raw, timestamp,
    experiment, dataset, metric
  FROM record WHERE is_new
),`;

const FAILED = `,
failed AS (
  INSERT INTO evalwatch.failure (transition_id, project_key)
  SELECT transition_id, project_key FROM moved WHERE kind = 'prompt' AND to_status = 'FAILED'
)`;

const COUNTED = `,
counted AS (
  INSERT INTO evalwatch.prompt_duration AS stored (project_key, status, day, bucket, count)
  SELECT fenced.project_key, d.status, d.day, d.bucket, d.count
  FROM fenced CROSS JOIN json_to_recordset($16)
    AS d(status text, day integer, bucket integer, count bigint)
  ON CONFLICT (project_key, status, day, bucket) DO UPDATE SET count = stored.count + excluded.count
)`;

const EXPERIMENT_COLUMNS = `pending, running, completed, failed, unknown,
    started_at, moved_at, ended_at, finished_at`;

/** Stores experiments, whose values are in this parameter. */
const grouped = (parameter: number) => `,
experiment AS MATERIALIZED (
  SELECT fenced.project_key, ((SELECT numbers FROM labels))[e.name] AS label_id, e.*
  FROM fenced CROSS JOIN ROWS FROM (json_to_recordset($${parameter}) AS (name integer,
    pending integer, running integer, completed integer, failed integer, unknown integer,
    started_at bigint, moved_at bigint, ended_at bigint, finished_at bigint, finishes boolean))
    WITH ORDINALITY AS e(name, ${EXPERIMENT_COLUMNS}, finishes, position)
),
grouped AS (
  INSERT INTO evalwatch.experiment (project_key, label_id, ${EXPERIMENT_COLUMNS})
  SELECT project_key, label_id, ${EXPERIMENT_COLUMNS} FROM experiment
  ON CONFLICT (project_key, label_id) DO UPDATE SET
    pending = excluded.pending, running = excluded.running, completed = excluded.completed,
    failed = excluded.failed, unknown = excluded.unknown, started_at = excluded.started_at,
    moved_at = excluded.moved_at, ended_at = excluded.ended_at, finished_at = excluded.finished_at
)`;

const FINISHED = `,
finished AS (
  INSERT INTO evalwatch.finish
    (project_key, label_id, at, completed, failed, unknown, started_at, ended_at, token)
  SELECT project_key, label_id, $8, completed, failed, unknown, started_at, ended_at, $3
  FROM experiment WHERE finishes ORDER BY position
  RETURNING finish_id
)`;

/**
 * Returns the statement that writes everything that the listings of a poll change. If the project has another token by now, it
 * writes nothing and returns no row. The parameters of durations and of experiments come last, if there are any.
 */
function commitStatement(parts: CommitParts): Statement {
  const name = `commit_poll${Object.entries(parts)
    .map(([part, isOn]) => (isOn ? `_${part.slice(3).toLowerCase()}` : ''))
    .join('')}`;
  return builtStatement(name, () => textOf(parts));
}

function textOf(parts: CommitParts): string {
  const { hasNew, hasFailures, hasDurations, hasExperiments, hasFinishes } = parts;
  return `
WITH fenced AS (
  UPDATE evalwatch.project
  SET token = $3, prompts = coalesce($4::json, prompts), datasets = coalesce($5::json, datasets),
    up = $9, consecutive_failures = $10, reason = $11, last_poll_at = $12, last_success_at = $13,
    steady_since = $14
  WHERE id = $1 AND token = $2
  RETURNING project_key, token
),
label AS MATERIALIZED (
  SELECT fenced.project_key, n.place, n.text, known.label_id IS NULL AS is_new,
    coalesce(known.label_id, nextval('evalwatch.label_label_id_seq')::integer) AS label_id
  FROM fenced CROSS JOIN json_array_elements_text($15) WITH ORDINALITY AS n(text, place)
  LEFT JOIN LATERAL (
    SELECT l.label_id FROM evalwatch.label l
    WHERE l.project_key = fenced.project_key AND l.text = n.text
    OFFSET 0) AS known ON true
),
named AS (
  INSERT INTO evalwatch.label (label_id, project_key, text)
  SELECT label_id, project_key, text FROM label WHERE is_new
),
labels AS (SELECT array_agg(label_id ORDER BY place) AS numbers FROM label),
record AS MATERIALIZED (
  SELECT fenced.project_key, r.kind, r.id, r.name, r.since, r.missing, r.gone, r.status,
    r.status_raw, r.timestamp, r.is_new,
    ((SELECT numbers FROM labels))[r.experiment] AS experiment,
    ((SELECT numbers FROM labels))[r.dataset] AS dataset,
    ((SELECT numbers FROM labels))[r.metric] AS metric
  FROM fenced CROSS JOIN json_to_recordset($6) AS r(kind text, id text, name text, since bigint,
    missing integer, gone boolean, status text, status_raw text, timestamp text, is_new boolean,
    experiment integer, dataset integer, metric integer)
),${hasNew ? ADDED : ''}
changed AS (
  UPDATE evalwatch.record r
  SET name = n.name, since = n.since, missing = n.missing, gone = n.gone, status = n.status,
    status_raw = n.status_raw, timestamp = n.timestamp,
    experiment = n.experiment, dataset = n.dataset, metric = n.metric
  FROM record n
  WHERE NOT n.is_new AND r.project_key = n.project_key AND r.kind = n.kind AND r.id = n.id
),
moved AS (
  INSERT INTO evalwatch.transition
    (project_key, at, token, kind, from_status, to_status, record_id, record_name)
  SELECT fenced.project_key, $8, fenced.token, m.kind, m.from_status, m.to_status,
    m.id, m.name
  FROM fenced CROSS JOIN ROWS FROM (json_to_recordset($7) AS (kind text, from_status text,
    to_status text, id text, name text)) WITH ORDINALITY
    AS m(kind, from_status, to_status, id, name, position)
  ORDER BY m.position
  RETURNING transition_id, project_key, kind, to_status
)${hasDurations ? COUNTED : ''}${hasFailures ? FAILED : ''}${
    hasExperiments ? grouped(hasDurations ? 17 : 16) : ''
  }${hasFinishes ? FINISHED : ''}
SELECT (SELECT json_agg(transition_id ORDER BY transition_id) FROM moved) AS transition_ids${
    hasFinishes
      ? ',\n  (SELECT json_agg(finish_id ORDER BY finish_id) FROM finished) AS finish_ids'
      : ''
  }
FROM fenced`;
}

interface CommitRecord {
  readonly is_new: boolean;
  readonly [column: string]: unknown;
}

interface CommitMove {
  readonly kind: Kind;
  readonly to_status: Status;
  readonly [column: string]: unknown;
}

/** Returns the statement that commits a poll, with its values. */
export function commitOf(
  { project, at, health, listings, durations = [] }: PollCommit,
  { summaries, experiments }: Outcome,
  { token, next }: CommitTokens,
): PollStatement {
  const { up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since } =
    toHealthColumns(health);
  const records: CommitRecord[] = [];
  const moves: CommitMove[] = [];
  const places = new LabelPlaces();
  for (const [kind, changes] of listings) {
    const appeared = new Set(
      changes.transitions.filter(({ from }) => from === 'NEW').map(({ id }) => id),
    );
    for (const record of changes.records) {
      records.push({
        kind,
        id: record.id,
        is_new: changes.baseline || appeared.has(record.id),
        since: record.since,
        missing: record.missing,
        gone: record.gone,
        status: record.status,
        status_raw: record.statusRaw,
        name: record.name,
        timestamp: record.timestamp,
        experiment: places.of(record.experiment),
        dataset: places.of(record.dataset),
        metric: places.of(record.metric),
      });
    }
    for (const { id, name, from, to } of changes.transitions) {
      moves.push({
        kind,
        from_status: from,
        to_status: to,
        id,
        name,
      });
    }
  }
  const rows = experiments.map(({ name, finishes, ...experiment }) => ({
    name: places.of(name),
    ...toOwnExperimentColumns(experiment),
    finishes,
  }));
  const values = [
    project,
    token,
    next,
    toJson(summaries.get('prompt')),
    toJson(summaries.get('dataset')),
    JSON.stringify(records),
    JSON.stringify(moves),
    at,
    up,
    consecutive_failures,
    reason,
    last_poll_at,
    last_success_at,
    steady_since,
    JSON.stringify(places.texts),
  ];
  const parts = {
    hasNew: records.some((record) => record.is_new),
    hasFailures: moves.some((move) => move.kind === 'prompt' && move.to_status === 'FAILED'),
    hasDurations: durations.length > 0,
    hasExperiments: rows.length > 0,
    hasFinishes: rows.some(({ finishes }) => finishes),
  };
  const statement = commitStatement(parts);
  return {
    statement,
    values: [
      ...values,
      ...(parts.hasDurations ? [JSON.stringify(durations)] : []),
      ...(parts.hasExperiments ? [JSON.stringify(rows)] : []),
    ],
  };
}

function toJson(summary: object | undefined): string | null {
  return summary === undefined ? null : JSON.stringify(summary);
}

/** Returns the transitions of a poll with the ids that its commit gave them. */
export function withIds(
  { listings }: PollCommit,
  ids: readonly number[],
): readonly CommittedTransition[] {
  return [...listings]
    .flatMap(([kind, { transitions }]) =>
      transitions.map((transition) => ({ ...transition, kind })),
    )
    .map((transition, index) => ({ ...transition, transitionId: ids[index] ?? 0 }));
}

/**
 * Selects whether the commit that gave the project the token $2 was made. Another statement may have given it a further one
 * since; a commit without transitions and finishes then counts as not made.
 */
export const MADE: Statement = {
  name: 'made_commit',
  text: `
SELECT moved.transition_ids, finished.finish_ids,
  num_nonnulls(moved.transition_ids, finished.finish_ids) > 0 OR p.token = $2 AS is_made
FROM evalwatch.project p CROSS JOIN LATERAL (
  SELECT json_agg(t.transition_id ORDER BY t.transition_id) AS transition_ids
  FROM evalwatch.transition t WHERE t.project_key = p.project_key AND t.token = $2) AS moved
CROSS JOIN LATERAL (
  SELECT json_agg(f.finish_id ORDER BY f.finish_id) AS finish_ids
  FROM evalwatch.finish f WHERE f.project_key = p.project_key AND f.token = $2) AS finished
WHERE p.id = $1`,
};

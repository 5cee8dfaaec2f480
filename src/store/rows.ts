import { stateOf, type Experiment, type PromptCounts } from '../domain/experiment.ts';
import type { ErrorTotal, NoErrorInfoReason } from '../domain/failure.ts';
import type { KnownRecord } from '../domain/record.ts';
import {
  statusesOf,
  UNFINISHED_STATUSES,
  type Kind,
  type Status,
  type UnfinishedStatus,
} from '../domain/status.ts';
import type { Summary } from '../domain/summary.ts';
import { StoreError } from '../monitor/errors.ts';
import type {
  CauseList,
  CauseRow,
  ExperimentRow,
  FailureRow,
  FinishRow,
  ListingSnapshot,
  PollHealth,
  ProjectFigures,
} from '../monitor/ports/store.ts';
import type { LabelNumbers } from './labels.ts';

// Rows that both engines select, and their conversion to domain types. The engines differ only in their booleans.

/** PostgreSQL has booleans; SQLite has 0 and 1. */
type Flag = boolean | number;

/** A row as it is selected. */
export type Selected<Row> = {
  readonly [Field in keyof Row]: undefined extends Row[Field] ? Row[Field] | null : Row[Field];
};

/** Puts undefined in place of NULL in a row, and returns it. */
export function defined<Row extends object>(row: Selected<Row>): Row {
  for (const [name, value] of Object.entries(row)) {
    if (value === null) Object.assign(row, { [name]: undefined });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no field is NULL any more
  return row as Row;
}

/** The columns of `project` that make a {@link PollHealth}. */
export interface HealthColumns {
  readonly up: Flag;
  readonly consecutive_failures: number;
  readonly reason: PollHealth['reason'] | null;
  readonly last_poll_at: number | null;
  readonly last_success_at: number | null;
  readonly steady_since: number | null;
}

/** The same columns of a project `p`, in the order in which statements select them. */
export const HEALTH_COLUMNS =
  'p.up, p.consecutive_failures, p.reason, p.last_poll_at, p.last_success_at, p.steady_since';

export function toHealth(row: HealthColumns): PollHealth {
  return {
    up: Boolean(row.up),
    consecutiveFailures: row.consecutive_failures,
    reason: row.reason ?? undefined,
    lastPollAt: row.last_poll_at ?? undefined,
    lastSuccessAt: row.last_success_at ?? undefined,
    steadySince: row.steady_since ?? undefined,
  };
}

export function toHealthColumns(health: PollHealth): HealthColumns {
  return {
    up: health.up,
    consecutive_failures: health.consecutiveFailures,
    reason: health.reason ?? null,
    last_poll_at: health.lastPollAt ?? null,
    last_success_at: health.lastSuccessAt ?? null,
    steady_since: health.steadySince ?? null,
  };
}

/** The columns of `record` without its listing and its labels. */
export type OwnColumns = readonly [
  id: string,
  status: Status,
  statusRaw: string | null,
  name: string | null,
  timestamp: string | null,
  since: number,
  missing: number,
  gone: Flag,
];

export type RecordColumns = readonly [...own: OwnColumns, ...labels: LabelNumbers];

/** @param labels the texts of the labels that the row refers to */
export function toKnownRecord(
  row: RecordColumns,
  labels: ReadonlyMap<number | null, string>,
): KnownRecord {
  const [id, status, statusRaw, name, timestamp, since, missing, gone, ...numbers] = row;
  const [experiment, dataset, metric] = numbers;
  return {
    id,
    status,
    statusRaw: statusRaw ?? undefined,
    name: name ?? undefined,
    timestamp: timestamp ?? undefined,
    experiment: labels.get(experiment),
    dataset: labels.get(dataset),
    metric: labels.get(metric),
    since,
    missing,
    gone: Boolean(gone),
  };
}

/** The columns of `experiment` without its project and its label. */
export interface OwnExperimentColumns {
  readonly pending: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
  readonly unknown: number;
  readonly started_at: number | null;
  readonly moved_at: number | null;
  readonly ended_at: number | null;
  readonly finished_at: number | null;
}

export function toOwnExperimentColumns(experiment: Experiment): OwnExperimentColumns {
  const { counts, startedAt, movedAt, endedAt, finishedAt } = experiment;
  return {
    pending: counts.PENDING,
    running: counts.RUNNING,
    completed: counts.COMPLETED,
    failed: counts.FAILED,
    unknown: counts.UNKNOWN,
    started_at: startedAt ?? null,
    moved_at: movedAt ?? null,
    ended_at: endedAt ?? null,
    finished_at: finishedAt ?? null,
  };
}

export type ExperimentColumns = Selected<Omit<ExperimentRow, 'counts' | 'state'>> & PromptCounts;

export function toExperimentRow(row: ExperimentColumns): ExperimentRow {
  const { PENDING, RUNNING, COMPLETED, FAILED, UNKNOWN, ...own } = row;
  const counts = { PENDING, RUNNING, COMPLETED, FAILED, UNKNOWN };
  const experiment = { ...defined<Omit<ExperimentRow, 'counts' | 'state'>>(own), counts };
  return { ...experiment, state: stateOf(experiment) };
}

/** A finish, whose counts have no unfinished prompts. */
export type FinishColumns = Omit<FinishRow, 'counts'> & Omit<PromptCounts, UnfinishedStatus>;

export function toFinishRow(row: FinishColumns): FinishRow {
  const { COMPLETED, FAILED, UNKNOWN, ...own } = row;
  return { ...own, counts: { PENDING: 0, RUNNING: 0, COMPLETED, FAILED, UNKNOWN } };
}

/** What is known of a failure, of which `error_info` and `reason` are part of its settlement. */
export type FailureColumns = Selected<Omit<FailureRow, 'settlement'>> & {
  readonly settled_at: number | null;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly error_msg_truncated: Flag;
  readonly reason: NoErrorInfoReason | null;
};

export function toFailureRow(row: FailureColumns): FailureRow {
  const { settled_at, error_id, error_msg, error_msg_truncated, reason, ...own } = row;
  const known = {
    errorInfo: { error_id, error_msg },
    errorMsgTruncated: Boolean(error_msg_truncated),
  };
  const settlement = reason === null ? known : { reason };
  return {
    ...defined<Omit<FailureRow, 'settlement'>>(own),
    settlement: settled_at === null ? undefined : settlement,
  };
}

/** The columns of `error_total`, without its project. */
export type ErrorTotalColumns = readonly [label: string, count: number, firstSeenAt: number];

export function toErrorTotals(rows: readonly ErrorTotalColumns[]): readonly ErrorTotal[] {
  return rows.map(([label, count, firstSeenAt]) => ({ label, count, firstSeenAt }));
}

/** JSON as a column: a text in SQLite, which has no such type. */
type Json<Value> = Value | string;

/** A project with its figures. */
export interface ProjectColumns extends HealthColumns {
  readonly id: string;
  readonly configured_at: number;
  readonly prompts: Json<Summary>;
  readonly datasets: Json<Summary>;
  /** Null or empty without any. */
  readonly errors: Json<readonly ErrorTotalColumns[]> | null;
}

/** The same columns of a project `p`. */
export const PROJECT_COLUMNS = `p.id, p.configured_at, ${HEALTH_COLUMNS}, p.prompts, p.datasets,
  (SELECT json_group_array(json_array(e.label, e.count, e.first_seen_at) ORDER BY e.label)
   FROM evalwatch.error_total e WHERE e.project_key = p.project_key) AS errors`;

export function toProjectFigures(row: ProjectColumns): ProjectFigures {
  const summaries = { prompt: parsed(row.prompts), dataset: parsed(row.datasets) };
  const prompts = toListingSnapshot('prompt', summaries.prompt);
  const errors = toErrorTotals(parsed(row.errors ?? []));
  return {
    snapshot: {
      project: row.id,
      configuredAt: row.configured_at,
      health: toHealth(row),
      listings: new Map([
        ['prompt', errors.length === 0 ? prompts : { ...prompts, errors }],
        ['dataset', toListingSnapshot('dataset', summaries.dataset)],
      ]),
    },
    summaries,
  };
}

function parsed<Value extends object>(json: Json<Value>): Value {
  return typeof json === 'string' ? JSON.parse(json) : json;
}

/** Returns what a snapshot shows of a listing with this summary. */
export function toListingSnapshot(kind: Kind, summary: Summary): ListingSnapshot {
  // Most projects have no datasets; all of them share one snapshot.
  return summary.counts === undefined ? NEVER_LISTED[kind] : snapshotOf(kind, summary);
}

const NEVER_LISTED: Readonly<Record<Kind, ListingSnapshot>> = {
  prompt: snapshotOf('prompt', {}),
  dataset: snapshotOf('dataset', {}),
};

function snapshotOf(kind: Kind, summary: Summary): ListingSnapshot {
  const { counts, missing = 0, gone = 0, failedAt, oldest, totals = [] } = summary;
  const isIdle = UNFINISHED_STATUSES.every((status) => !counts?.[status]) && !summary.finishing;
  return {
    counts: new Map(statusesOf(kind).map((status) => [status, counts?.[status] ?? 0])),
    missing,
    goneTotal: gone,
    transitions: totals,
    lastFailureAt: failedAt,
    oldest: new Map(
      UNFINISHED_STATUSES.flatMap((status) => {
        const since = oldest?.[status];
        return since === undefined ? [] : [[status, since] as const];
      }),
    ),
    isIdle: summary.baselined === true && isIdle,
    errors: [],
  };
}

/** A cause, with the totals of all causes. */
export type CauseColumns = Omit<CauseRow, 'isNew' | 'errorInfo'> & {
  readonly is_new: Flag;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly reason: NoErrorInfoReason | null;
  readonly total_causes: number;
  readonly total_count: number;
};

export function toCauseList(rows: readonly CauseColumns[]): CauseList {
  const causes = rows.map((row): CauseRow => {
    const { cause, count, projects, firstAt, lastAt, transitionId } = row;
    const { error_id, error_msg } = row;
    const errorInfo = row.reason === null ? { error_id, error_msg } : undefined;
    const isNew = Boolean(row.is_new);
    return { cause, count, projects, firstAt, lastAt, isNew, transitionId, errorInfo };
  });
  const [first] = rows;
  const total = { causes: first?.total_causes ?? 0, count: first?.total_count ?? 0 };
  const counted = causes.reduce((sum, { count }) => sum + count, 0);
  return {
    causes,
    others: { causes: total.causes - causes.length, count: total.count - counted },
  };
}

export function unknownProject(project: string): StoreError {
  return new StoreError('other', `the project ${JSON.stringify(project)} is not in the store`);
}

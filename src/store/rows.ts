import { stateOf, type Experiment, type PromptCounts } from '../domain/experiment.ts';
import type { ErrorTotal, NoErrorInfoReason, Settlement } from '../domain/failure.ts';
import type { KnownRecord } from '../domain/record.ts';
import {
  statusesOf,
  UNFINISHED_STATUSES,
  type Kind,
  type Origin,
  type PromptStatus,
  type Status,
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
  PendingFailure,
  PollHealth,
  ProjectFigures,
  StatusRow,
  TransitionRow,
} from '../monitor/ports/store.ts';
import type { LabelNumbers } from './labels.ts';

// Rows that both engines select, and their conversion to domain types. The engines differ only in their booleans.

/** PostgreSQL has booleans; SQLite has 0 and 1. */
type Flag = boolean | number;

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

/** Only a damaged or edited store has later times. No calendar computes with those beyond 8.64e15 ms. */
const MAX_TIME = Date.parse('9999-12-31T23:59:59.999Z');

/** Returns the nearest possible time, so that a daemon can start with any store (`store check` reports impossible times). */
function toTime(ms: number | null): number | undefined {
  return ms === null ? undefined : Math.min(Math.max(ms, 0), MAX_TIME);
}

export function toHealth(row: HealthColumns): PollHealth {
  return {
    up: Boolean(row.up),
    consecutiveFailures: row.consecutive_failures,
    reason: row.reason ?? undefined,
    lastPollAt: toTime(row.last_poll_at),
    lastSuccessAt: toTime(row.last_success_at),
    steadySince: toTime(row.steady_since),
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

export interface StatusColumns {
  readonly project: string;
  readonly id: string;
  readonly name: string | null;
  readonly status: PromptStatus;
  readonly status_raw: string | null;
  readonly since: number;
  readonly missing: number;
  readonly experiment: string | null;
  readonly dataset: string | null;
  readonly metric: string | null;
}

export function toStatusRow(row: StatusColumns): StatusRow {
  return {
    project: row.project,
    promptId: row.id,
    promptName: row.name ?? undefined,
    status: row.status,
    statusRaw: row.status_raw ?? undefined,
    since: row.since,
    missing: row.missing,
    experiment: row.experiment ?? undefined,
    dataset: row.dataset ?? undefined,
    metric: row.metric ?? undefined,
  };
}

/** The counts of an experiment; a finish has none of the first two. */
interface ExperimentCounts {
  readonly pending?: number;
  readonly running?: number;
  readonly completed: number;
  readonly failed: number;
  readonly unknown: number;
}

function toCounts(row: ExperimentCounts): PromptCounts {
  const { pending: PENDING = 0, running: RUNNING = 0 } = row;
  return { PENDING, RUNNING, COMPLETED: row.completed, FAILED: row.failed, UNKNOWN: row.unknown };
}

/** The columns of `experiment` without its project and its label. */
export interface OwnExperimentColumns extends Required<ExperimentCounts> {
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

export interface ExperimentColumns extends OwnExperimentColumns {
  readonly key: number;
  readonly project: string;
  readonly experiment: string;
}

export function toExperimentRow(row: ExperimentColumns): ExperimentRow {
  const state: Experiment = {
    counts: toCounts(row),
    startedAt: toTime(row.started_at),
    movedAt: toTime(row.moved_at),
    endedAt: toTime(row.ended_at),
    finishedAt: toTime(row.finished_at),
  };
  const { key, project, experiment } = row;
  return { ...state, key, project, experiment, state: stateOf(state) };
}

export interface FinishColumns extends ExperimentCounts {
  readonly finish_id: number;
  readonly at: number;
  readonly project: string;
  readonly experiment: string;
  readonly started_at: number;
  readonly ended_at: number;
}

export function toFinishRow(row: FinishColumns): FinishRow {
  return {
    finishId: row.finish_id,
    at: row.at,
    project: row.project,
    experiment: row.experiment,
    counts: toCounts(row),
    startedAt: row.started_at,
    endedAt: row.ended_at,
  };
}

export interface TransitionColumns {
  readonly transition_id: number;
  readonly at: number;
  readonly project: string;
  readonly kind: Kind;
  readonly record_id: string;
  readonly experiment: string | null;
  readonly from_status: Origin;
  readonly to_status: Status;
}

export function toTransitionRow(row: TransitionColumns): TransitionRow {
  return {
    transitionId: row.transition_id,
    at: row.at,
    project: row.project,
    kind: row.kind,
    id: row.record_id,
    experiment: row.experiment ?? undefined,
    from: row.from_status,
    to: row.to_status,
  };
}

export interface FailureColumns {
  readonly transition_id: number;
  readonly at: number;
  readonly project: string;
  readonly record_id: string;
  readonly record_name: string | null;
  readonly experiment: string | null;
  readonly settled_at: number | null;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly error_msg_truncated: Flag;
  readonly reason: NoErrorInfoReason | null;
  readonly cause: string | null;
}

export function toFailureRow(row: FailureColumns): FailureRow {
  return {
    transitionId: row.transition_id,
    at: row.at,
    project: row.project,
    promptId: row.record_id,
    promptName: row.record_name ?? undefined,
    experiment: row.experiment ?? undefined,
    settlement: row.settled_at === null ? undefined : toSettlement(row),
    cause: row.cause ?? undefined,
  };
}

function toSettlement(row: FailureColumns): Settlement {
  if (row.reason !== null) return { reason: row.reason };
  return {
    errorInfo: { error_id: row.error_id, error_msg: row.error_msg },
    errorMsgTruncated: Boolean(row.error_msg_truncated),
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

/** The columns of a cause, with the totals of all causes. */
export interface CauseColumns {
  readonly cause: string;
  readonly count: number;
  readonly projects: number;
  readonly first_at: number;
  readonly last_at: number;
  readonly is_new: Flag;
  readonly transition_id: number;
  readonly error_id: string | null;
  readonly error_msg: string | null;
  readonly reason: NoErrorInfoReason | null;
  readonly total_causes: number;
  readonly total_count: number;
}

export function toCauseList(rows: readonly CauseColumns[]): CauseList {
  const causes = rows.map((row): CauseRow => {
    const { error_id, error_msg } = row;
    const errorInfo = row.reason === null ? { error_id, error_msg } : undefined;
    return {
      cause: row.cause,
      count: row.count,
      projects: row.projects,
      firstAt: row.first_at,
      lastAt: row.last_at,
      isNew: Boolean(row.is_new),
      transitionId: row.transition_id,
      errorInfo,
    };
  });
  const [first] = rows;
  const total = { causes: first?.total_causes ?? 0, count: first?.total_count ?? 0 };
  const counted = causes.reduce((sum, { count }) => sum + count, 0);
  return {
    causes,
    others: { causes: total.causes - causes.length, count: total.count - counted },
  };
}

export interface PendingColumns {
  readonly transition_id: number;
  readonly token: string | null;
  readonly project: string;
  readonly record_id: string;
  readonly record_name: string | null;
  readonly removed_at: number | null;
  readonly tries: number;
  readonly useless_tries: number;
  readonly first_try_at: number | null;
  readonly last_try_at: number | null;
  readonly next_try_at: number;
}

export function toPendingFailure(row: PendingColumns): PendingFailure {
  return {
    transitionId: row.transition_id,
    token: row.token ?? undefined,
    project: row.project,
    promptId: row.record_id,
    promptName: row.record_name ?? undefined,
    removedAt: row.removed_at ?? undefined,
    tries: {
      count: row.tries,
      useless: row.useless_tries,
      firstAt: row.first_try_at ?? undefined,
      lastAt: row.last_try_at ?? undefined,
      nextAt: row.next_try_at,
    },
  };
}

export function unknownProject(project: string): StoreError {
  return new StoreError('other', `the project ${JSON.stringify(project)} is not in the store`);
}

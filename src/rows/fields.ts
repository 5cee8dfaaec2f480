import { causeOf } from '../domain/cause.ts';
import { tookMs } from '../domain/experiment.ts';
import { type StateExpectation, expectationIn, type StateExpectations } from '../domain/limits.ts';
import type { PromptStatus } from '../domain/status.ts';
import type { FailedRequest } from '../monitor/errors.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import type {
  CauseRow,
  ExperimentRow,
  FailureRow,
  FinishRow,
  ProjectSnapshot,
  StatusRow,
  TransitionRow,
} from '../monitor/ports/store.ts';
import type { WatchedProject } from '../monitor/ports/watched-project.ts';
import type {
  CauseFields,
  ExpectationFields,
  ExperimentFields,
  FailureFields,
  FinishFields,
  LastErrorFields,
  PollFields,
  ProjectFields,
  PromptFields,
  TransitionFields,
} from './schema.ts';

// Builds the JSON of each row that schema.ts declares (docs/specification.md#rows). schema.ts loads zod, which many
// commands do without: import nothing but types from it.

/**
 * States of a project, those that need attention first. `late`: its poll has been due for longer than a minute. `new`: not
 * polled yet. `unknown`: another worker polls it, and the store could not be read yet. `paused`: it is not polled on purpose.
 */
export const PROJECT_STATES = ['down', 'late', 'new', 'unknown', 'up', 'paused'] as const;
export type ProjectState = (typeof PROJECT_STATES)[number];

/** What a process has in memory of a configured project. */
export interface ProjectInMemory extends WatchedProject {
  /** In the past if a tick is late; undefined while nothing is due. */
  readonly nextPollAt: number | undefined;
  /** Undefined until its durations were read for the first time. */
  readonly expectations: StateExpectations | undefined;
  /** The pause that lasts; `until` is epoch ms, undefined if only the configuration ends it. */
  readonly pause:
    { readonly until: number | undefined; readonly polls: 'stop' | 'continue' } | undefined;
}

/** @param configured undefined if the project is not in the configuration of this process */
export function projectFields(
  { project, listings, health: storedHealth }: ProjectSnapshot,
  configured: ProjectInMemory | undefined,
): ProjectFields {
  // That in memory is current, also while the store cannot be written.
  const { health = storedHealth, nextPollAt, expectations } = configured ?? {};
  const prompts = listings.get('prompt');
  const count = (status: PromptStatus) => prompts?.counts.get(status) ?? 0;
  return {
    project,
    up: health.up,
    consecutive_failures: health.consecutiveFailures,
    reason: health.reason ?? null,
    last_error: health.failure === undefined ? null : lastErrorFields(health.failure),
    last_poll: isoTimeOrNull(health.lastPollAt),
    last_success: isoTimeOrNull(health.lastSuccessAt),
    next_poll: isoTimeOrNull(nextPollAt),
    prompts: {
      PENDING: count('PENDING'),
      RUNNING: count('RUNNING'),
      COMPLETED: count('COMPLETED'),
      FAILED: count('FAILED'),
      UNKNOWN: count('UNKNOWN'),
    },
    missing: prompts?.missing ?? 0,
    team: configured?.team || null,
    pause: configured?.pause
      ? { until: isoTimeOrNull(configured.pause.until), polls: configured.pause.polls }
      : null,
    expectations: {
      PENDING: expectationFields(expectations?.PENDING),
      RUNNING: expectationFields(expectations?.RUNNING),
    },
    max_failure_ratio: configured?.expect.maxFailureRatio ?? null,
  };
}

/** Maximum length of a text of the service, because an answer has all projects. The log has more of it. */
const MAX_ERROR_LENGTH = 300;

function lastErrorFields(failure: FailedRequest): LastErrorFields {
  const beginning = (text: string | undefined) =>
    text?.slice(0, MAX_ERROR_LENGTH).toWellFormed() ?? null;
  return {
    message: failure.message,
    url: failure.url ?? null,
    status_code: failure.statusCode ?? null,
    location: beginning(failure.location),
    detail: beginning(failure.detail),
  };
}

function expectationFields(expectation: StateExpectation | undefined): ExpectationFields {
  return {
    limit_seconds: secondsOrNull(expectation?.limitMs),
    limit_source: expectation?.source ?? null,
    typical_seconds: secondsOrNull(expectation?.typicalMs),
  };
}

/** @param expectations of the project; undefined while unknown */
export function promptFields(
  row: StatusRow,
  expectations: StateExpectations | undefined,
): PromptFields {
  return {
    project: row.project,
    prompt_id: row.promptId,
    prompt_name: row.promptName ?? null,
    status: row.status,
    status_raw: row.statusRaw ?? null,
    since: isoTime(row.since),
    missing: row.missing,
    experiment: row.experiment ?? null,
    dataset: row.dataset ?? null,
    metric: row.metric ?? null,
    ...expectationFields(expectationIn(row.status, expectations)),
  };
}

export function transitionFields(row: TransitionRow): TransitionFields {
  return {
    transition_id: row.transitionId,
    time: isoTime(row.at),
    project: row.project,
    ...(row.kind === 'prompt' ? { prompt_id: row.id } : { dataset_id: row.id }),
    experiment: row.experiment ?? null,
    from: row.from,
    to: row.to,
  };
}

export function failureFields({
  transitionId,
  at,
  project,
  promptId,
  promptName,
  experiment,
  settlement,
  cause,
}: FailureRow): FailureFields {
  return {
    transition_id: transitionId,
    time: isoTime(at),
    project,
    prompt_id: promptId,
    prompt_name: promptName ?? null,
    experiment: experiment ?? null,
    error_info: settlement?.errorInfo ?? null,
    error_msg_truncated: settlement?.errorInfo !== undefined && settlement.errorMsgTruncated,
    reason: settlement?.reason ?? null,
    settled: settlement !== undefined,
    cause: cause ?? null,
  };
}

export function experimentFields(row: ExperimentRow): ExperimentFields {
  const { project, experiment, state, counts, startedAt, movedAt, endedAt, finishedAt } = row;
  const isFinished = finishedAt !== undefined && startedAt !== undefined && endedAt !== undefined;
  return {
    project,
    experiment,
    state,
    prompts: counts,
    first_move: isoTimeOrNull(startedAt),
    last_move: isoTimeOrNull(movedAt),
    ended: isoTimeOrNull(endedAt),
    finished: isoTimeOrNull(finishedAt),
    duration_seconds: isFinished ? toSeconds(tookMs({ startedAt, endedAt })) : null,
  };
}

export function finishFields(row: FinishRow): FinishFields {
  const { COMPLETED, FAILED, UNKNOWN } = row.counts;
  return {
    finish_id: row.finishId,
    time: isoTime(row.at),
    project: row.project,
    experiment: row.experiment,
    prompts: { COMPLETED, FAILED, UNKNOWN },
    first_move: isoTime(row.startedAt),
    ended: isoTime(row.endedAt),
    duration_seconds: toSeconds(tookMs(row)),
  };
}

/** Characters that a row of a cause shows of the message of its last failure. */
const MAX_LAST_MESSAGE = 500;

export function causeFields(row: CauseRow): CauseFields {
  return {
    cause: row.cause,
    error_id: row.errorInfo?.error_id ?? null,
    shape: causeOf(row.errorInfo).shape,
    count: row.count,
    projects: row.projects,
    first_seen: isoTime(row.firstAt),
    last_seen: isoTime(row.lastAt),
    is_new: row.isNew,
    transition_id: row.transitionId,
    last_error_msg: row.errorInfo?.error_msg?.slice(0, MAX_LAST_MESSAGE).toWellFormed() ?? null,
  };
}

/** Returns the row for the causes that a limit has left out, with the number of their failures. */
export function otherCausesFields(count: number): CauseFields {
  return {
    cause: 'other',
    error_id: null,
    shape: null,
    count,
    projects: null,
    first_seen: null,
    last_seen: null,
    is_new: null,
    transition_id: null,
    last_error_msg: null,
  };
}

/** Row of the command `poll`, and of a poll on request. */
export function pollResultFields(poll: FinishedPoll): Omit<PollFields, 'time' | 'changed'> {
  return {
    project: poll.project,
    ok: poll.failure === undefined,
    reason: poll.failure?.reason ?? null,
    prompts: poll.prompts ?? null,
    transitions: poll.transitions,
    duration_ms: Math.round(poll.durationMs),
  };
}

/** Row of the event stream. */
export function pollFields(poll: FinishedPoll): PollFields {
  return {
    ...pollResultFields(poll),
    time: isoTime(poll.health.lastPollAt ?? 0),
    changed: poll.changed,
  };
}

/** ISO 8601 UTC with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function isoTimeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms);
}

/** Rounded to milliseconds. */
function secondsOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : toSeconds(ms);
}

function toSeconds(ms: number): number {
  return Math.round(ms) / 1000;
}

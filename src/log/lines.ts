import { tookMs } from '../domain/experiment.ts';
import type { LogLevel } from '../domain/options.ts';
import { isUnfinished, type Kind } from '../domain/status.ts';
import type { StoreFailureReason } from '../monitor/errors.ts';
import type { EventOf, MonitorEvent, PollFailure } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { describeError, type LogFields, type Logger } from './logger.ts';

const POLL_FAILURE_INTERVAL_MS = 5 * 60_000;
const STORE_FAILURE_INTERVAL_MS = 60_000;
const REQUEST_FAILURE_INTERVAL_MS = 60_000;

type Line = readonly [level: LogLevel, fields: LogFields, msg: string];

/** Types of events whose lines depend on those before, or that change them. */
type Repeated =
  | 'poll.finished'
  | 'api.retry_scheduled'
  | 'store.commit_failed'
  | 'store.committed'
  | 'config.applied';
type Plain = Exclude<MonitorEvent['type'], Repeated>;

const none = () => undefined;

/** The line of each other event. */
const LINES: { readonly [Type in Plain]: (event: EventOf<Type>) => Line | undefined } = {
  'listing.baseline': ({ project, kind, counts }) => [
    'info',
    { event: 'project.baseline', project, kind, counts },
    'First listing stored',
  ],
  'listing.paged': ({ project, kind }) => [
    'warn',
    { event: 'listing.paged', project, kind },
    'The listing has further pages, which are not read: what leaves the first page counts as gone',
  ],
  'record.transition': ({ project, transition }) => {
    const { kind, id, name, from, to, transitionId: transition_id } = transition;
    const event = `${kind}.transition`;
    const fields = { event, project, ...recordFields(kind, id, name), from, to, transition_id };
    return ['info', fields, 'Status changed'];
  },
  'record.gone': ({ project, kind, record: { id, name, status } }) => [
    kind === 'prompt' && isUnfinished(status) ? 'warn' : 'info',
    { event: `${kind}.gone`, project, ...recordFields(kind, id, name), status },
    'No longer listed',
  ],
  'experiment.finished': ({ finish }) => {
    const { finishId: finish_id, project, experiment, counts, startedAt, endedAt } = finish;
    const { COMPLETED, FAILED, UNKNOWN } = counts;
    const fields = {
      event: 'experiment.finished',
      project,
      experiment,
      prompts: { COMPLETED, FAILED, UNKNOWN },
      first_move: new Date(startedAt).toISOString(),
      ended: new Date(endedAt).toISOString(),
      duration_seconds: tookMs(finish) / 1000,
      finish_id,
    };
    return ['info', fields, 'Experiment finished'];
  },
  // Once, and not again while the next listings have the same.
  'items.anomalous': ({ project, kind, reason, count, indexes, changed }) =>
    changed
      ? [
          'warn',
          { event: 'items.anomalous', project, kind, reason, count, indexes },
          'Items are not as documented',
        ]
      : undefined,
  'prompt.failed': (event) => {
    const fields = {
      event: 'prompt.failed',
      project: event.project,
      ...recordFields('prompt', event.promptId, event.promptName),
      transition_id: event.transitionId,
      error_info: event.errorInfo,
      error_msg_truncated: event.errorMsgTruncated || undefined,
      error_info_unusual: event.isUnusual || undefined,
      reason: event.reason,
      cause: event.cause,
    };
    return ['error', fields, 'Prompt failed'];
  },
  'project.resumed': ({ project, since, transitions }) => {
    const last_poll = since === undefined ? null : new Date(since).toISOString();
    return [
      'info',
      { event: 'project.resumed', project, last_poll, transitions },
      'Project polled again after a pause: what moved since its last poll was found at once',
    ];
  },
  'worker.waiting': ({ reason, error: err }) => [
    'warn',
    { event: 'worker.waiting', reason, err },
    'The database cannot be used yet, so this worker polls nothing; it tries again every second',
  ],
  'worker.claimed': ({ worker, projects, owned }) => [
    'info',
    { event: 'worker.claimed', worker, projects, owned },
    'Projects taken over',
  ],
  'worker.released': ({ worker, projects, owned }) => [
    'info',
    { event: 'worker.released', worker, projects, owned },
    'Projects no longer owned',
  ],
  'worker.lease_lost': ({ worker, projects, owned }) => [
    'error',
    { event: 'worker.lease_lost', worker, projects, owned },
    'Lease lost, and with it all projects of this worker',
  ],
  'worker.config_differs': ({ worker, others }) => [
    'warn',
    { event: 'worker.config_differs', worker, others: others.slice(0, 10) },
    'Other workers have another configuration',
  ],
  'worker.projects_restored': ({ worker, projects }) => [
    'warn',
    { event: 'worker.projects_restored', worker, projects },
    'The database had other projects than the configuration that all workers share; they were configured again',
  ],
  'config.reloaded': ({ projects, changes }) => [
    'info',
    { event: 'config.reloaded', projects, ...changes },
    'Configuration reloaded',
  ],
  'config.reload_failed': ({ reasons, isRepeated }) =>
    isRepeated
      ? undefined
      : ['error', { event: 'config.reload_failed', reasons }, 'Configuration not reloaded'],
  'notification.sent': ({ receiver, id: message_id, message, doubt }) =>
    doubt === undefined
      ? ['info', { event: 'notification.sent', receiver, message_id, message }, 'Message sent']
      : [
          'warn',
          { event: 'notification.sent', receiver, message_id, message, reason: doubt },
          'Message sent, but something seems wrong',
        ],
  'notification.failed': ({ receiver, reason, statusCode: status_code }) => [
    'warn',
    { event: 'notification.failed', receiver, reason, status_code },
    'A receiver does not take messages; they are sent again until it does, for 24 h',
  ],
  'notification.recovered': ({ receiver, failuresBefore: consecutive_failures }) => [
    'info',
    { event: 'notification.recovered', receiver, consecutive_failures },
    'A receiver takes messages again',
  ],
  'notification.store_failed': ({ receiver, error: err }) => [
    'error',
    { event: 'notification.store_failed', receiver, err },
    'The store cannot say what a receiver is to be told; it is asked again every 5 s',
  ],
  'notification.given_up': ({ receiver, project, message, count, reason }) => [
    'error',
    { event: 'notification.given_up', receiver, project, message, count, reason },
    'A receiver took no message within 24 h, so this one is given up',
  ],
  'error_info.fetched': none,
  'api.responded': none,
  'api.request_finished': none,
  'api.retry_sent': none,
  'scheduler.started_poll': none,
  'scheduler.overlapped': none,
  'scheduler.missed': none,
  'store.commit_refused': none,
};

/** Writes a log line for each event that has one, repeated ones less often (docs/specification.md#repeated-lines). */
export class EventLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** Monotonic time of the last `poll.failed` line of each failing project, ms. */
  readonly #pollFailureLoggedAt = new Map<string, number>();
  readonly #storeFailures = new Map<StoreFailureReason, { count: number; loggedAt: number }>();
  /** Projects with a retry since their last success. */
  readonly #retrying = new Set<string>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  readonly observe = (event: MonitorEvent): void => {
    if (event.type === 'poll.finished') {
      if (event.failure === undefined) this.#pollSucceeded(event);
      else this.#pollFailed(event, event.failure);
    } else if (event.type === 'api.retry_scheduled') {
      this.#retried(event);
    } else if (event.type === 'store.commit_failed') {
      this.#commitFailed(event);
    } else if (event.type === 'store.committed') {
      // Keeps `loggedAt`: otherwise a project whose commits fail between the successful commits of others would log every
      // failure.
      for (const run of this.#storeFailures.values()) run.count = 0;
    } else if (event.type === 'config.applied') {
      this.#forgetOthers(event.projects);
    } else {
      this.#write(event.type, event);
    }
  };

  #write<Type extends Plain>(type: Type, event: EventOf<Type>): void {
    const line = LINES[type](event);
    if (line === undefined) return;
    const [level, fields, msg] = line;
    this.#logger[level](fields, msg);
  }

  /** Drops the state of every project that is not configured any more. */
  #forgetOthers(configured: ReadonlyMap<string, unknown>): void {
    for (const project of [...this.#pollFailureLoggedAt.keys(), ...this.#retrying]) {
      if (configured.has(project)) continue;
      this.#pollFailureLoggedAt.delete(project);
      this.#retrying.delete(project);
    }
  }

  #pollSucceeded({ project, failuresBefore, ...event }: EventOf<'poll.finished'>): void {
    this.#pollFailureLoggedAt.delete(project);
    this.#retrying.delete(project);
    if (failuresBefore > 0) {
      this.#logger.info(
        { event: 'poll.recovered', project, consecutive_failures: failuresBefore },
        'Poll succeeded again',
      );
    }
    this.#logger[event.changed ? 'info' : 'debug'](
      {
        event: 'poll.completed',
        project,
        prompts: event.prompts,
        transitions: event.transitions,
        duration_ms: Math.round(event.durationMs),
      },
      'Poll completed',
    );
  }

  #pollFailed(event: EventOf<'poll.finished'>, failure: PollFailure): void {
    const { project, failuresBefore } = event;
    const loggedAt = failuresBefore === 0 ? undefined : this.#pollFailureLoggedAt.get(project);
    const now = this.#clock.monotonic();
    if (loggedAt !== undefined && now - loggedAt < POLL_FAILURE_INTERVAL_MS) return;
    this.#pollFailureLoggedAt.set(project, now);
    const { url, statusCode, location, detail, cause } = failure.details;
    this.#logger.error(
      {
        event: 'poll.failed',
        project,
        reason: failure.reason,
        url,
        status_code: statusCode,
        location,
        detail,
        consecutive_failures: event.health.consecutiveFailures,
        duration_ms: Math.round(event.durationMs),
        err: {
          type: failure.reason === 'store' ? 'StoreError' : 'ApiError',
          message: failure.message,
          cause: cause instanceof Error ? describeError(cause) : undefined,
        },
      },
      'Poll failed',
    );
  }

  #retried(event: EventOf<'api.retry_scheduled'>): void {
    const { project } = event;
    this.#logger[this.#retrying.has(project) ? 'debug' : 'warn'](
      {
        event: 'api.retried',
        project,
        endpoint: event.endpoint,
        attempt: event.attempt,
        delay_ms: event.delayMs,
        reason: event.reason,
        status_code: event.statusCode,
      },
      'Request will be sent again',
    );
    this.#retrying.add(project);
  }

  #commitFailed({ reason, error }: EventOf<'store.commit_failed'>): void {
    const now = this.#clock.monotonic();
    const run = this.#storeFailures.get(reason) ?? { count: 0, loggedAt: -Infinity };
    this.#storeFailures.set(reason, run);
    run.count += 1;
    if (now - run.loggedAt < STORE_FAILURE_INTERVAL_MS) return;
    run.loggedAt = now;
    this.#logger.error(
      { event: 'store.commit_failed', reason, consecutive_failures: run.count, err: error },
      'Store operation failed',
    );
  }
}

function recordFields(
  kind: Kind,
  id: string,
  name: string | undefined,
): Readonly<Record<string, string | undefined>> {
  return kind === 'prompt' ? { prompt_id: id, prompt_name: name } : { dataset_id: id };
}

/**
 * Returns the function that logs bugs found while answering requests: at most one line a minute, with the number of
 * failures since the line before, so that a client cannot fill the log.
 */
export function createRequestFailureLog(logger: Logger): (error: unknown) => void {
  let failures = 0;
  let last: unknown;
  let isWaiting = false;

  function logFailures(): void {
    isWaiting = failures > 0;
    if (!isWaiting) return;
    const fields = { event: 'request.failed', failures, err: last };
    logger.error(fields, 'Unexpected error while answering a request');
    failures = 0;
    setTimeout(logFailures, REQUEST_FAILURE_INTERVAL_MS).unref();
  }

  return (error) => {
    failures += 1;
    last = error;
    if (!isWaiting) logFailures();
  };
}

import { tookMs } from '../domain/experiment.ts';
import { isUnfinished, type Kind } from '../domain/status.ts';
import type { StoreFailureReason } from '../monitor/errors.ts';
import type { EventOf, MonitorEvent, PollFailure } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { describeError, type Logger } from './logger.ts';

const POLL_FAILURE_INTERVAL_MS = 5 * 60_000;
const STORE_FAILURE_INTERVAL_MS = 60_000;
const REQUEST_FAILURE_INTERVAL_MS = 60_000;

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
    switch (event.type) {
      case 'poll.finished':
        if (event.failure === undefined) this.#pollSucceeded(event);
        else this.#pollFailed(event, event.failure);
        break;
      case 'listing.baseline': {
        const { project, kind, counts } = event;
        const fields = { event: 'project.baseline', project, kind, counts };
        this.#logger.info(fields, 'First listing stored');
        break;
      }
      case 'listing.paged':
        this.#logger.warn(
          { event: 'listing.paged', project: event.project, kind: event.kind },
          'The listing has further pages, which are not read: what leaves the first page counts as gone',
        );
        break;
      case 'record.transition':
        this.#moved(event);
        break;
      case 'record.gone':
        this.#gone(event);
        break;
      case 'experiment.finished':
        return this.#experimentFinished(event);
      case 'items.anomalous': {
        // Once, and not again while the next listings have the same.
        const { project, kind, reason, count, indexes } = event;
        const fields = { event: 'items.anomalous', project, kind, reason, count, indexes };
        if (event.changed) this.#logger.warn(fields, 'Items are not as documented');
        break;
      }
      case 'prompt.failed':
        this.#promptFailed(event);
        break;
      case 'api.retry_scheduled':
        this.#retried(event);
        break;
      case 'store.commit_failed':
        this.#commitFailed(event);
        break;
      case 'store.committed':
        // Keeps `loggedAt`: otherwise a project whose commits fail between the successful commits of others would log every
        // failure.
        for (const run of this.#storeFailures.values()) run.count = 0;
        break;
      case 'worker.waiting':
        this.#logger.warn(
          { event: 'worker.waiting', reason: event.reason, err: event.error },
          'The database cannot be used yet, so this worker polls nothing; it tries again every second',
        );
        break;
      case 'worker.claimed':
        this.#logger.info(
          { event: 'worker.claimed', ...ownershipFields(event) },
          'Projects taken over',
        );
        break;
      case 'worker.released':
        this.#logger.info(
          { event: 'worker.released', ...ownershipFields(event) },
          'Projects no longer owned',
        );
        break;
      case 'worker.lease_lost':
        this.#logger.error(
          { event: 'worker.lease_lost', ...ownershipFields(event) },
          'Lease lost, and with it all projects of this worker',
        );
        break;
      case 'worker.config_differs': {
        const { worker, others } = event;
        this.#logger.warn(
          { event: 'worker.config_differs', worker, others: others.slice(0, 10) },
          'Other workers have another configuration',
        );
        break;
      }
      case 'worker.projects_restored':
        this.#logger.warn(
          { event: 'worker.projects_restored', worker: event.worker, projects: event.projects },
          'The database had other projects than the configuration that all workers share; they were configured again',
        );
        break;
      case 'config.applied':
        this.#forgetOthers(event.projects);
        break;
      case 'config.reloaded':
        this.#logger.info(
          { event: 'config.reloaded', projects: event.projects, ...event.changes },
          'Configuration reloaded',
        );
        break;
      case 'config.reload_failed': {
        const fields = { event: 'config.reload_failed', reasons: event.reasons };
        if (!event.isRepeated) this.#logger.error(fields, 'Configuration not reloaded');
        break;
      }
      case 'notification.sent':
      case 'notification.failed':
      case 'notification.recovered':
      case 'notification.store_failed':
      case 'notification.given_up':
        this.#notified(event);
        break;
      case 'project.resumed':
        return this.#projectResumed(event);
      case 'error_info.fetched':
      case 'api.responded':
      case 'api.request_finished':
      case 'api.retry_sent':
      case 'scheduler.started_poll':
      case 'scheduler.overlapped':
      case 'store.commit_refused':
      case 'scheduler.missed':
        break;
    }
  };

  #projectResumed({ project, since, transitions }: EventOf<'project.resumed'>): void {
    const last_poll = since === undefined ? null : new Date(since).toISOString();
    this.#logger.info(
      { event: 'project.resumed', project, last_poll, transitions },
      'Project polled again after a pause: what moved since its last poll was found at once',
    );
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

  #moved({ project, transition }: EventOf<'record.transition'>): void {
    const { kind, id, name, from, to, transitionId } = transition;
    const event = `${kind}.transition`;
    this.#logger.info(
      { event, project, ...recordFields(kind, id, name), from, to, transition_id: transitionId },
      'Status changed',
    );
  }

  #gone({ project, kind, record: { id, name, status } }: EventOf<'record.gone'>): void {
    const isWaiting = kind === 'prompt' && isUnfinished(status);
    this.#logger[isWaiting ? 'warn' : 'info'](
      { event: `${kind}.gone`, project, ...recordFields(kind, id, name), status },
      'No longer listed',
    );
  }

  #experimentFinished({ finish }: EventOf<'experiment.finished'>): void {
    const { finishId, project, experiment, counts, startedAt, endedAt } = finish;
    const { COMPLETED, FAILED, UNKNOWN } = counts;
    this.#logger.info(
      {
        event: 'experiment.finished',
        project,
        experiment,
        prompts: { COMPLETED, FAILED, UNKNOWN },
        first_move: new Date(startedAt).toISOString(),
        ended: new Date(endedAt).toISOString(),
        duration_seconds: tookMs(finish) / 1000,
        finish_id: finishId,
      },
      'Experiment finished',
    );
  }

  #notified(
    event: EventOf<`notification.${'sent' | 'failed' | 'recovered' | 'store_failed' | 'given_up'}`>,
  ): void {
    const { receiver } = event;
    if (event.type === 'notification.sent') {
      const { id, message, doubt } = event;
      const fields = { event: 'notification.sent', receiver, message_id: id, message };
      if (doubt === undefined) this.#logger.info(fields, 'Message sent');
      else
        this.#logger.warn({ ...fields, reason: doubt }, 'Message sent, but something seems wrong');
    } else if (event.type === 'notification.failed') {
      const { reason, statusCode } = event;
      this.#logger.warn(
        { event: 'notification.failed', receiver, reason, status_code: statusCode },
        'A receiver does not take messages; they are sent again until it does, for 24 h',
      );
    } else if (event.type === 'notification.recovered') {
      const consecutive_failures = event.failuresBefore;
      this.#logger.info(
        { event: 'notification.recovered', receiver, consecutive_failures },
        'A receiver takes messages again',
      );
    } else if (event.type === 'notification.store_failed') {
      this.#logger.error(
        { event: 'notification.store_failed', receiver, err: event.error },
        'The store cannot say what a receiver is to be told; it is asked again every 5 s',
      );
    } else {
      const { project, message, count, reason } = event;
      this.#logger.error(
        { event: 'notification.given_up', receiver, project, message, count, reason },
        'A receiver took no message within 24 h, so this one is given up',
      );
    }
  }

  #promptFailed(event: EventOf<'prompt.failed'>): void {
    this.#logger.error(
      {
        event: 'prompt.failed',
        project: event.project,
        ...recordFields('prompt', event.promptId, event.promptName),
        transition_id: event.transitionId,
        error_info: event.errorInfo,
        error_msg_truncated: event.errorMsgTruncated || undefined,
        error_info_unusual: event.isUnusual || undefined,
        reason: event.reason,
        cause: event.cause,
      },
      'Prompt failed',
    );
  }
}

function ownershipFields(
  event: EventOf<'worker.claimed' | 'worker.released' | 'worker.lease_lost'>,
): Readonly<Record<string, unknown>> {
  return { worker: event.worker, projects: event.projects, owned: event.owned };
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

import type { StoreFailureReason } from '../monitor/errors.ts';
import type { Observer, PollFailure } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import {
  logAnomalies,
  logBaseline,
  logGone,
  logOwnership,
  logPromptFailure,
  logTransition,
  type EventOf,
} from './lines.ts';
import type { Logger } from './logger.ts';

const POLL_FAILURE_INTERVAL_MS = 5 * 60_000;
const STORE_FAILURE_INTERVAL_MS = 60_000;

export interface LogObserver {
  readonly observe: Observer;
  /** Forgets what was said of projects that are not among these; to be called with each new configuration. */
  setProjects(ids: readonly string[]): void;
}

/** Turns events into log lines, repeated ones less often (docs/specification.md#repeated-lines). */
export function createLogObserver(logger: Logger, clock: Clock): LogObserver {
  /** Monotonic ms of the last line of each running series of failures. */
  const pollFailureLoggedAt = new Map<string, number>();
  const storeFailures = new Map<StoreFailureReason, { count: number; loggedAt: number }>();
  /** Projects that had a retry since their last success. */
  const retrying = new Set<string>();

  function pollFinished(event: EventOf<'poll.finished'>): void {
    if (event.failure === undefined) pollSucceeded(event);
    else pollFailed(event, event.failure);
  }

  function pollSucceeded(event: EventOf<'poll.finished'>): void {
    const { project, failuresBefore, durationMs } = event;
    pollFailureLoggedAt.delete(project);
    retrying.delete(project);
    if (failuresBefore > 0) {
      logger.info(
        { event: 'poll.recovered', project, consecutive_failures: failuresBefore },
        'Poll succeeded again',
      );
    }
    logger[event.changed ? 'info' : 'debug'](
      {
        event: 'poll.completed',
        project,
        prompts: event.prompts,
        transitions: event.transitions,
        duration_ms: Math.round(durationMs),
      },
      'Poll completed',
    );
  }

  function pollFailed(event: EventOf<'poll.finished'>, failure: PollFailure): void {
    const { project, failuresBefore, durationMs } = event;
    const loggedAt = failuresBefore === 0 ? undefined : pollFailureLoggedAt.get(project);
    const now = clock.monotonic();
    if (loggedAt !== undefined && now - loggedAt < POLL_FAILURE_INTERVAL_MS) return;
    pollFailureLoggedAt.set(project, now);
    const { statusCode, location, detail, cause } = failure.details;
    logger.error(
      {
        event: 'poll.failed',
        project,
        reason: failure.reason,
        status_code: statusCode,
        location,
        detail,
        consecutive_failures: event.health.consecutiveFailures,
        duration_ms: Math.round(durationMs),
        err: {
          type: failure.reason === 'store' ? 'StoreError' : 'ApiError',
          message: failure.message,
          cause: cause instanceof Error ? cause : undefined,
        },
      },
      'Poll failed',
    );
  }

  function retryScheduled(event: EventOf<'api.retry_scheduled'>): void {
    const { project } = event;
    const level = retrying.has(project) ? 'debug' : 'warn';
    retrying.add(project);
    logger[level](
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
  }

  function commitFailed({ reason, error }: EventOf<'store.commit_failed'>): void {
    const now = clock.monotonic();
    const run = storeFailures.get(reason) ?? { count: 0, loggedAt: -Infinity };
    const due = now - run.loggedAt >= STORE_FAILURE_INTERVAL_MS;
    const count = run.count + 1;
    storeFailures.set(reason, { count, loggedAt: due ? now : run.loggedAt });
    if (!due) return;
    logger.error(
      { event: 'store.commit_failed', reason, consecutive_failures: count, err: error },
      'Store could not do what was asked',
    );
  }

  /** Keeps when each reason was logged: one project may be refused again and again between the commits of others. */
  function noteCommit(): void {
    for (const run of storeFailures.values()) run.count = 0;
  }

  return {
    observe(event) {
      switch (event.type) {
        case 'poll.finished':
          pollFinished(event);
          break;
        case 'listing.baseline':
          logBaseline(logger, event);
          break;
        case 'record.transition':
          logTransition(logger, event);
          break;
        case 'record.gone':
          logGone(logger, event);
          break;
        case 'items.anomalous':
          logAnomalies(logger, event);
          break;
        case 'prompt.failed':
          logPromptFailure(logger, event);
          break;
        case 'api.retry_scheduled':
          retryScheduled(event);
          break;
        case 'store.commit_failed':
          commitFailed(event);
          break;
        case 'store.committed':
          noteCommit();
          break;
        case 'worker.claimed':
        case 'worker.released':
        case 'worker.lease_lost':
          logOwnership(logger, event);
          break;
        case 'worker.config_differs':
          logger.warn(
            {
              event: 'worker.config_differs',
              worker: event.worker,
              others: event.others.slice(0, 10),
            },
            'Other workers have another configuration',
          );
          break;
        case 'error_info.fetched':
        case 'api.responded':
        case 'api.request_finished':
        case 'api.retried':
        case 'scheduler.started_poll':
        case 'scheduler.overlapped':
        case 'store.commit_refused':
        case 'scheduler.missed':
          break;
      }
    },
    setProjects(ids) {
      const configured = new Set(ids);
      for (const project of pollFailureLoggedAt.keys()) {
        if (!configured.has(project)) pollFailureLoggedAt.delete(project);
      }
      for (const project of retrying) {
        if (!configured.has(project)) retrying.delete(project);
      }
    },
  };
}

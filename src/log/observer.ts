import type { StoreFailureReason } from '../monitor/errors.ts';
import type { EventOf, Observer, PollFailure } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import {
  logAnomalies,
  logBaseline,
  logCommitFailure,
  logConfigDifference,
  logGone,
  logOwnership,
  logPages,
  logRestoredProjects,
  logPollFailure,
  logPollSuccess,
  logPromptFailure,
  logRetry,
  logTransition,
} from './lines.ts';
import type { Logger } from './logger.ts';

const POLL_FAILURE_INTERVAL_MS = 5 * 60_000;
const STORE_FAILURE_INTERVAL_MS = 60_000;

export interface LogObserver {
  readonly observe: Observer;
  /** Drops the state of every project that is not configured any more. */
  setProjects(ids: readonly string[]): void;
}

/** Writes a log line for each event that has one, repeated ones less often (docs/specification.md#repeated-lines). */
export function createLogObserver(logger: Logger, clock: Clock): LogObserver {
  /** Monotonic time of the last `poll.failed` line of each failing project, ms. */
  const pollFailureLoggedAt = new Map<string, number>();
  const storeFailures = new Map<StoreFailureReason, { count: number; loggedAt: number }>();
  /** Projects with a retry since their last success. */
  const retrying = new Set<string>();

  function pollSucceeded(event: EventOf<'poll.finished'>): void {
    pollFailureLoggedAt.delete(event.project);
    retrying.delete(event.project);
    logPollSuccess(logger, event);
  }

  function pollFailed(event: EventOf<'poll.finished'>, failure: PollFailure): void {
    const { project, failuresBefore } = event;
    const loggedAt = failuresBefore === 0 ? undefined : pollFailureLoggedAt.get(project);
    const now = clock.monotonic();
    if (loggedAt !== undefined && now - loggedAt < POLL_FAILURE_INTERVAL_MS) return;
    pollFailureLoggedAt.set(project, now);
    logPollFailure(logger, event, failure);
  }

  function retryScheduled(event: EventOf<'api.retry_scheduled'>): void {
    const level = retrying.has(event.project) ? 'debug' : 'warn';
    retrying.add(event.project);
    logRetry(logger, level, event);
  }

  function commitFailed({ reason, error }: EventOf<'store.commit_failed'>): void {
    const now = clock.monotonic();
    const run = storeFailures.get(reason) ?? { count: 0, loggedAt: -Infinity };
    const isDue = now - run.loggedAt >= STORE_FAILURE_INTERVAL_MS;
    const count = run.count + 1;
    storeFailures.set(reason, { count, loggedAt: isDue ? now : run.loggedAt });
    if (isDue) logCommitFailure(logger, reason, count, error);
  }

  /**
   * Resets the failure counts but keeps `loggedAt`: otherwise a project whose commits fail between the successful commits of
   * others would log every failure.
   */
  function committed(): void {
    for (const run of storeFailures.values()) run.count = 0;
  }

  return {
    observe(event) {
      switch (event.type) {
        case 'poll.finished':
          if (event.failure === undefined) pollSucceeded(event);
          else pollFailed(event, event.failure);
          break;
        case 'listing.baseline':
          logBaseline(logger, event);
          break;
        case 'listing.paged':
          logPages(logger, event);
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
          committed();
          break;
        case 'worker.claimed':
        case 'worker.released':
        case 'worker.lease_lost':
          logOwnership(logger, event);
          break;
        case 'worker.config_differs':
          logConfigDifference(logger, event);
          break;
        case 'worker.projects_restored':
          logRestoredProjects(logger, event);
          break;
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
    },
    setProjects(ids) {
      const configured = new Set(ids);
      for (const project of [...pollFailureLoggedAt.keys(), ...retrying]) {
        if (configured.has(project)) continue;
        pollFailureLoggedAt.delete(project);
        retrying.delete(project);
      }
    },
  };
}

import { isUnfinished, type Kind } from '../domain/status.ts';
import type { StoreFailureReason } from '../monitor/errors.ts';
import type { EventOf, PollFailure } from '../monitor/events.ts';
import type { Logger } from './logger.ts';

// Writes each log line; observer.ts decides when to write it.

export function logPollSuccess(logger: Logger, event: EventOf<'poll.finished'>): void {
  const { project, failuresBefore, durationMs } = event;
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

export function logPollFailure(
  logger: Logger,
  event: EventOf<'poll.finished'>,
  failure: PollFailure,
): void {
  const { url, statusCode, location, detail, cause } = failure.details;
  logger.error(
    {
      event: 'poll.failed',
      project: event.project,
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
        cause: cause instanceof Error ? cause : undefined,
      },
    },
    'Poll failed',
  );
}

export function logRetry(
  logger: Logger,
  level: 'debug' | 'warn',
  event: EventOf<'api.retry_scheduled'>,
): void {
  logger[level](
    {
      event: 'api.retried',
      project: event.project,
      endpoint: event.endpoint,
      attempt: event.attempt,
      delay_ms: event.delayMs,
      reason: event.reason,
      status_code: event.statusCode,
    },
    'Request will be sent again',
  );
}

export function logCommitFailure(
  logger: Logger,
  reason: StoreFailureReason,
  consecutiveFailures: number,
  error: unknown,
): void {
  logger.error(
    {
      event: 'store.commit_failed',
      reason,
      consecutive_failures: consecutiveFailures,
      err: error,
    },
    'Store operation failed',
  );
}

export function logConfigDifference(
  logger: Logger,
  { worker, others }: EventOf<'worker.config_differs'>,
): void {
  logger.warn(
    { event: 'worker.config_differs', worker, others: others.slice(0, 10) },
    'Other workers have another configuration',
  );
}

export function logRestoredProjects(
  logger: Logger,
  { worker, projects }: EventOf<'worker.projects_restored'>,
): void {
  logger.warn(
    { event: 'worker.projects_restored', worker, projects },
    'The database had other projects than the configuration that all workers share; they were configured again',
  );
}

export function logBaseline(logger: Logger, event: EventOf<'listing.baseline'>): void {
  const { project, kind, counts } = event;
  logger.info({ event: 'project.baseline', project, kind, counts }, 'First listing stored');
}

export function logTransition(logger: Logger, event: EventOf<'record.transition'>): void {
  const { kind, id, name, from, to, transitionId } = event.transition;
  logger.info(
    {
      event: `${kind}.transition`,
      project: event.project,
      ...recordFields(kind, id, name),
      from,
      to,
      transition_id: transitionId,
    },
    'Status changed',
  );
}

export function logGone(logger: Logger, event: EventOf<'record.gone'>): void {
  const { project, kind, record } = event;
  const unfinished = kind === 'prompt' && isUnfinished(record.status);
  logger[unfinished ? 'warn' : 'info'](
    {
      event: `${kind}.gone`,
      project,
      ...recordFields(kind, record.id, record.name),
      status: record.status,
    },
    'No longer listed',
  );
}

export function logPages(logger: Logger, { project, kind }: EventOf<'listing.paged'>): void {
  logger.warn(
    { event: 'listing.paged', project, kind },
    'The listing has further pages, which are not read: what leaves the first page counts as gone',
  );
}

/** Logs anomalies once, not again while the next listings have the same. */
export function logAnomalies(logger: Logger, event: EventOf<'items.anomalous'>): void {
  if (!event.changed) return;
  const { project, kind, reason, count, indexes } = event;
  logger.warn(
    { event: 'items.anomalous', project, kind, reason, count, indexes },
    'Items are not as documented',
  );
}

export function logPromptFailure(logger: Logger, event: EventOf<'prompt.failed'>): void {
  logger.error(
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

export function logOwnership(
  logger: Logger,
  event: EventOf<'worker.claimed' | 'worker.released' | 'worker.lease_lost'>,
): void {
  const { type, worker, projects, owned } = event;
  const fields = { worker, projects, owned };
  switch (type) {
    case 'worker.claimed':
      logger.info({ event: 'worker.claimed', ...fields }, 'Projects taken over');
      break;
    case 'worker.released':
      logger.info({ event: 'worker.released', ...fields }, 'Projects no longer owned');
      break;
    case 'worker.lease_lost':
      logger.error(
        { event: 'worker.lease_lost', ...fields },
        'Lease lost, and with it all projects of this worker',
      );
      break;
  }
}

function recordFields(
  kind: Kind,
  id: string,
  name: string | undefined,
): Readonly<Record<string, string | undefined>> {
  return kind === 'prompt' ? { prompt_id: id, prompt_name: name } : { dataset_id: id };
}

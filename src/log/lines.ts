import { isWaiting, type Kind } from '../domain/status.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { Logger } from './logger.ts';

// Lines that need nothing but their event; observer.ts has those that also need a state.

export type EventOf<Type extends MonitorEvent['type']> = Extract<MonitorEvent, { type: Type }>;

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
  const unfinished = kind === 'prompt' && isWaiting(record.status);
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

/** An anomaly that the last listing had too is not told again. */
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
      reason: event.reason,
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
      logger.info({ event: 'worker.released', ...fields }, 'Projects given back');
      break;
    case 'worker.lease_lost':
      logger.error({ event: 'worker.lease_lost', ...fields }, 'Lease lost, projects with it');
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

import { isUnfinished } from '../domain/status.ts';
import type { MonitorEvent, Observer } from '../monitor/events.ts';
import { codeLabel, type ProcessMetrics } from './process-metrics.ts';
import type { ProjectSeries } from './project-series.ts';

/** Creates the observer that counts events. Events of projects that are not in `projects` change no series of a project. */
export function createMetricsObserver(
  metrics: ProcessMetrics,
  projects: ReadonlyMap<string, ProjectSeries>,
): Observer {
  return (event) => {
    switch (event.type) {
      case 'poll.finished':
        metrics.pollDuration.observe(event.durationMs / 1000);
        projects.get(event.project)?.pollFinished(event);
        break;
      case 'record.transition':
        observeStateDuration(event, projects.get(event.project));
        break;
      case 'items.anomalous':
        projects.get(event.project)?.countAnomalies(event.reason, event.count);
        break;
      case 'error_info.fetched':
        metrics.errorInfoFetches.inc();
        if (!event.ok) metrics.errorInfoFetchFailures.inc();
        break;
      case 'api.responded':
        metrics.apiRequests.inc({ endpoint: event.endpoint, code: codeLabel(event.statusCode) });
        break;
      case 'api.request_finished':
        observeRequest(event, metrics);
        break;
      case 'api.retry_sent':
        metrics.apiRetries.inc({ endpoint: event.endpoint });
        break;
      case 'store.committed':
        metrics.storeCommitDuration.observe(event.durationMs / 1000);
        break;
      case 'store.commit_failed':
        metrics.storeCommitFailures.inc({ reason: event.reason });
        break;
      case 'store.commit_refused':
        metrics.storeCommitsRefused.inc({ reason: event.reason });
        break;
      case 'scheduler.started_poll':
        metrics.schedulerLag.observe(event.lagMs / 1000);
        break;
      case 'scheduler.overlapped':
        projects.get(event.project)?.countOverlap();
        break;
      case 'scheduler.missed':
        projects.get(event.project)?.countMissed(event.count);
        break;
      case 'listing.baseline':
      case 'listing.paged':
      case 'record.gone':
      case 'prompt.failed':
      case 'api.retry_scheduled':
      case 'worker.claimed':
      case 'worker.released':
      case 'worker.lease_lost':
      case 'worker.config_differs':
      case 'worker.projects_restored':
        break;
    }
  };
}

function observeStateDuration(
  { transition }: Extract<MonitorEvent, { type: 'record.transition' }>,
  project: ProjectSeries | undefined,
): void {
  const { kind, from, heldMs } = transition;
  if (kind === 'prompt' && isUnfinished(from) && heldMs !== undefined) {
    project?.observeStateDuration(from, heldMs);
  }
}

function observeRequest(
  event: Extract<MonitorEvent, { type: 'api.request_finished' }>,
  metrics: ProcessMetrics,
): void {
  const { endpoint, failure: reason } = event;
  metrics.apiRequestDuration.observe({ endpoint }, event.durationMs / 1000);
  metrics.apiResponseBytes.inc({ endpoint }, event.bytes);
  if (reason !== undefined) metrics.apiRequestFailures.inc({ endpoint, reason });
}

import { bars, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { chosen, counted, quantile, rate } from '../queries.ts';

const DURATION = 'evalwatch_poll_duration_seconds';
const LAG = 'evalwatch_scheduler_lag_seconds';

export const poller: Row = {
  title: 'Polls',
  panels: [
    lines(
      {
        title: 'Polls',
        description:
          'Finished polls per second, those that found nothing new (304 or the same bytes), and those that failed.',
        unit: 'ops',
        width: 12,
      },
      ['finished', rate(chosen('evalwatch_polls_total'))],
      ['unchanged', rate(chosen('evalwatch_polls_unchanged_total'))],
      ['failed', rate(chosen('evalwatch_poll_failures_total'))],
    ),
    bars(
      {
        title: 'Failed polls',
        description: 'Failed polls by project and reason. The log has the details in poll.failed.',
        unit: 'short',
        width: 12,
        alerts: ['EvalwatchProjectPollFailing', 'EvalwatchAuthFailing'],
      },
      ['{{project}} {{reason}}', counted('project, reason', 'evalwatch_poll_failures_total')],
    ),
    lines(
      {
        title: 'Poll duration and lag',
        description:
          'Time of a poll from start to end, with its waiting for slot and rate limit, and the lag from when it was due until its first request. Median and 95th percentile of all projects.',
        unit: 's',
        width: 8,
        alerts: ['EvalwatchSchedulerStalled'],
      },
      ['duration median', quantile(0.5, DURATION)],
      ['duration 95 %', quantile(0.95, DURATION)],
      ['lag median', quantile(0.5, LAG)],
      ['lag 95 %', quantile(0.95, LAG)],
    ),
    bars(
      {
        title: 'Polls left out',
        description:
          'Scheduled polls that did not run because the one before was still running, or because the daemon was held up.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchSchedulerOverrun'],
      },
      ['{{project}} overlapped', counted('project', 'evalwatch_scheduler_overlapped_runs_total')],
      ['{{project}} missed', counted('project', 'evalwatch_scheduler_missed_runs_total')],
    ),
    bars(
      {
        title: 'Unexpected items',
        description:
          'Items of listings that are not as documented, by project and reason, counted again in every listing that shows them.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchUnexpectedItems'],
      },
      ['{{project}} {{reason}}', counted('project, reason', 'evalwatch_item_anomalies_total')],
    ),
  ],
};

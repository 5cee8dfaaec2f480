import { bars, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { counted, projectRate, quantile } from '../queries.ts';

const DURATION = 'evalwatch_poll_duration_seconds';
const LAG = 'evalwatch_scheduler_lag_seconds';

export const poller: Row = {
  title: 'Polls',
  panels: [
    lines(
      {
        title: 'Polls',
        description: 'Polls per second: finished, unchanged (304 or the same bytes), and failed.',
        unit: 'ops',
        width: 12,
      },
      ['finished', projectRate('evalwatch_polls_total')],
      ['unchanged', projectRate('evalwatch_polls_unchanged_total')],
      ['failed', projectRate('evalwatch_poll_failures_total')],
    ),
    bars(
      {
        title: 'Failed polls',
        description:
          'Failed polls by project and reason. The log line poll.failed has the details.',
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
          'Duration of a poll including its wait for a slot and the rate limit, and the delay between its due time and its first request. Median and 95th percentile of all projects.',
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
        title: 'Skipped polls',
        description:
          'Scheduled polls that did not run because the previous poll was still running (overlapped), or because evalwatch could not start them in time (missed).',
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
          'Items of listings that do not follow the documentation of the service, by project and reason. The same item counts in each listing.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchUnexpectedItems'],
      },
      ['{{project}} {{reason}}', counted('project, reason', 'evalwatch_item_anomalies_total')],
    ),
  ],
};

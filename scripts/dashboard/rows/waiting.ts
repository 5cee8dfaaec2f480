import { heatmap, limits, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { chosen, told } from '../queries.ts';

const BUCKETS = 'evalwatch_prompt_state_duration_seconds_bucket';

function overADay(q: number): string {
  return `histogram_quantile(${q}, sum by (status, le) (increase(${chosen(BUCKETS)}[1d])))`;
}

export const waiting: Row = {
  title: 'Time in state',
  panels: [
    limits(
      lines(
        {
          title: 'Longest wait',
          description:
            'Longest time that a prompt has been PENDING or RUNNING. An alert fires after 1 hour of PENDING or 4 hours of RUNNING.',
          unit: 's',
          width: 12,
          alerts: ['EvalwatchPromptStuck'],
        },
        [
          '{{project}} {{status}}',
          `time() - ${told('project, status', 'evalwatch_prompt_oldest_in_state_timestamp_seconds')}`,
        ],
      ),
      [3600, 'yellow'],
      [14_400, 'red'],
    ).noValue('No prompt waits'),
    lines(
      {
        title: 'Time in state over a day',
        description:
          'Time that prompts spent in PENDING or RUNNING, over the preceding 24 hours: median and 90th percentile. Estimated from buckets that end at 1 day.',
        unit: 's',
        width: 6,
      },
      ['{{status}} median', overADay(0.5)],
      ['{{status}} 90 %', overADay(0.9)],
    ).noValue('No prompt moved on'),
    heatmap(
      {
        title: 'Time in RUNNING',
        description: 'Number of prompts that left RUNNING, by the time they spent in it.',
        unit: 's',
        width: 6,
      },
      `sum by (le) (increase(${chosen(BUCKETS, 'status="RUNNING"')}[$__rate_interval]))`,
    ),
  ],
};

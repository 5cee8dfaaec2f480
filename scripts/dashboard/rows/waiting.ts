import { heatmap, limits, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { added, told } from '../queries.ts';
import { table } from '../tables.ts';

const BUCKETS = 'evalwatch_prompt_state_duration_seconds_bucket';
const WAITED = `(time() - ${of('evalwatch_prompt_oldest_in_state_timestamp_seconds')})`;
const LIMIT = of('evalwatch_prompt_state_limit_seconds');

function of(metric: string): string {
  return told('project, status', metric);
}

function overADay(q: number): string {
  return `histogram_quantile(${q}, ${added('status, le', BUCKETS, '1d')})`;
}

export const waiting: Row = {
  title: 'Time in state',
  panels: [
    limits(
      lines(
        {
          title: 'Longest wait against the limit',
          description:
            'Longest time that a prompt has been PENDING or RUNNING, as a share of its limit. An alert fires after 10 minutes over 100 %.',
          unit: 'percentunit',
          width: 12,
          alerts: ['EvalwatchPromptStuck'],
        },
        ['{{project}} {{status}}', `${WAITED} / ${LIMIT}`],
      ),
      [1, 'red'],
    ).noValue('No prompt waits'),
    table(
      {
        title: 'Waits, usual times and limits',
        description:
          'How long the oldest prompt of each project has been PENDING or RUNNING, how long is usual (the median of 30 days; empty until 20 prompts are known), and the limit at which an alert fires (empty where it is off).',
        unit: 's',
        width: 12,
      },
      { project: 'Project', status: 'Status' },
      [
        { title: 'Longest wait', expr: WAITED },
        { title: 'Usual', expr: of('evalwatch_prompt_state_typical_seconds') },
        { title: 'Limit', expr: LIMIT },
        {
          title: 'Share of limit',
          expr: `${WAITED} / ${LIMIT}`,
          properties: [{ id: 'unit', value: 'percentunit' }],
        },
      ],
    ),
    lines(
      {
        title: 'Time in state over a day',
        description:
          'Time that prompts spent in PENDING or RUNNING, over the preceding 24 hours: median and 90th percentile. Estimated from buckets that end at 1 day.',
        unit: 's',
        width: 12,
      },
      ['{{status}} median', overADay(0.5)],
      ['{{status}} 90 %', overADay(0.9)],
    ).noValue('No prompt moved on'),
    heatmap(
      {
        title: 'Time in RUNNING',
        description: 'Number of prompts that left RUNNING, by the time they spent in it.',
        unit: 's',
        width: 12,
      },
      added('le', BUCKETS, '$__rate_interval', 'status="RUNNING"'),
    ),
  ],
};

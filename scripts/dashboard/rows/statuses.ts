import { areas, bars, limits, lines } from '../charts.ts';
import { withStatusColors, type Row } from '../panels.ts';
import { grown, told } from '../queries.ts';

const MOVES = 'evalwatch_prompt_transitions_total';
const INTERVAL = '$__rate_interval';

/** Prompts that moved to these statuses within the preceding day, by project. */
function finished(to: string): string {
  return `sum by (project) (${grown('project, from, to', MOVES, '1d', to)})`;
}

function moves(metric: string): string {
  return `sum by (from, to) (${grown('project, from, to', metric, INTERVAL)}) > 0`;
}

export const statuses: Row = {
  title: 'Statuses and failures',
  panels: [
    withStatusColors(
      areas(
        {
          title: 'Prompts by status',
          description:
            'Prompts by last known status. UNKNOWN means a status that the service does not document.',
          unit: 'short',
          width: 12,
        },
        ['{{status}}', `sum by (status) (${told('project, status', 'evalwatch_prompts')})`],
      ),
    ),
    bars(
      {
        title: 'Prompt transitions',
        description:
          'Changes of status found by polls. NEW stands for prompts seen for the first time. Statuses between two polls are not seen.',
        unit: 'short',
        width: 12,
      },
      ['{{from}} → {{to}}', moves(MOVES)],
    ),
    bars(
      {
        title: 'Failures by project',
        description: 'Prompts that moved to FAILED. The log has one line prompt.failed for each.',
        unit: 'short',
        width: 12,
        alerts: ['EvalwatchPromptFailed'],
      },
      [
        '{{project}}',
        `sum by (project) (${grown('project, from', MOVES, INTERVAL, 'to="FAILED"')}) > 0`,
      ],
    ),
    limits(
      lines(
        {
          title: 'Failure ratio over a day',
          description:
            'Share of failed prompts among those that finished within the preceding 24 hours. Over 20 % of at least 20 prompts, an alert fires.',
          unit: 'percentunit',
          width: 12,
          alerts: ['EvalwatchPromptFailureRatioHigh'],
        },
        ['{{project}}', `${finished('to="FAILED"')} / ${finished('to=~"COMPLETED|FAILED"')}`],
      ).max(1),
      [0.2, 'red'],
    ),
    bars(
      {
        title: 'Missing and gone prompts',
        description:
          'Prompts missing from the last complete listing, and prompts given up as gone after several listings without them. Gone prompts no longer count as prompts.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchPromptsMissing', 'EvalwatchPromptsVanished'],
      },
      ['{{project}}: missing', `${told('project', 'evalwatch_prompts_missing')} > 0`],
      ['{{project}}: gone', `${grown('project', 'evalwatch_prompts_gone_total', INTERVAL)} > 0`],
    ),
    withStatusColors(
      areas(
        {
          title: 'Datasets by status',
          description:
            'Datasets by last known status, for projects with datasets: true. NONE means no status.',
          unit: 'short',
          width: 8,
        },
        ['{{status}}', `sum by (status) (${told('project, status', 'evalwatch_datasets')})`],
      ),
    ).noValue('No project watches its datasets'),
    bars(
      {
        title: 'Dataset transitions',
        description: 'Changes of status found by polls.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchDatasetFailed'],
      },
      ['{{from}} → {{to}}', moves('evalwatch_dataset_transitions_total')],
    ),
  ],
};

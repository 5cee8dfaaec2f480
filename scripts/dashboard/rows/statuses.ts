import { areas, bars, limits, lines } from '../charts.ts';
import { withStatusColors, type Row } from '../panels.ts';
import { grown, told } from '../queries.ts';

const MOVES = 'evalwatch_prompt_transitions_total';
const INTERVAL = '$__rate_interval';

/** Prompts that moved to these statuses within the day before, by project. */
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
            'Prompts by last known status. UNKNOWN are those with a status that the service does not document.',
          unit: 'short',
          width: 12,
        },
        ['{{status}}', `sum by (status) (${told('project, status', 'evalwatch_prompts')})`],
      ),
    ),
    bars(
      {
        title: 'Moves of prompts',
        description:
          'Moves from one status to another that polls found; from NEW those of prompts seen for the first time. States that a prompt passed through between two polls are skipped.',
        unit: 'short',
        width: 12,
      },
      ['{{from}} → {{to}}', moves(MOVES)],
    ),
    bars(
      {
        title: 'Failures by project',
        description: 'Prompts that moved to FAILED. The log has a line prompt.failed for each.',
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
            'Of the prompts that moved to COMPLETED or FAILED within the 24 hours before, the share that failed. Over 20 % an alert fires if 20 or more finished.',
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
          'Prompts that the last complete listing lacked, and those that became gone because several in a row did. Gone ones no longer count as prompts.',
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
            'Datasets by last known status, of projects that watch them (datasets: true). NONE are those without a status.',
          unit: 'short',
          width: 8,
        },
        ['{{status}}', `sum by (status) (${told('project, status', 'evalwatch_datasets')})`],
      ),
    ).noValue('No project watches its datasets'),
    bars(
      {
        title: 'Moves of datasets',
        description: 'Moves of datasets from one status to another that polls found.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchDatasetFailed'],
      },
      ['{{from}} → {{to}}', moves('evalwatch_dataset_transitions_total')],
    ),
  ],
};

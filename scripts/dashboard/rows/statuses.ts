import { areas, bars, limits, lines } from '../charts.ts';
import { withStatusColors, type Row } from '../panels.ts';
import { begun, grown, told } from '../queries.ts';

const MOVES = 'evalwatch_prompt_transitions_total';
const INTERVAL = '$__rate_interval';

const BY_ERROR = 'project, error_id';
const FAILURES = 'evalwatch_prompt_failures_total';
const FIRST_SEEN_AGE = `time() - ${told(BY_ERROR, 'evalwatch_prompt_error_first_seen_timestamp_seconds')}`;
/** `begun` adds the first failures of an error_id, with which its series begins. */
const FAILED_WITH = `(${grown(BY_ERROR, FAILURES, INTERVAL)} > 0 or ${begun(BY_ERROR, FAILURES, INTERVAL)} and ${FIRST_SEEN_AGE} < 3600)`;
const OBJECTIVE = told('project', 'evalwatch_project_max_failure_ratio');
/** 3 days in steps of an hour, because reading every sample of 3 days at each point of the chart is too slow. */
const DAYS = '3d:1h';
const FAILED = 'to="FAILED"';
const FINISHED = 'to=~"COMPLETED|FAILED"';

/** Returns the prompts that moved to these statuses within the range, by project. */
function moved(to: string, range: string): string {
  return `sum by (project) (${grown('project, from, to', MOVES, range, to)})`;
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
        width: 8,
        alerts: ['EvalwatchPromptFailed'],
      },
      ['{{project}}', `sum by (project) (${grown('project, from', MOVES, INTERVAL, FAILED)}) > 0`],
    ),
    lines(
      {
        title: 'Failure ratio over a day',
        description:
          'Share of failed prompts among those that finished within the preceding 24 hours, and the objective of the project, dashed. An alert fires for an outage, in which many more prompts fail.',
        unit: 'percentunit',
        width: 8,
        alerts: ['EvalwatchPromptFailureRatioHigh'],
      },
      ['{{project}}', `${moved(FAILED, '1d')} / ${moved(FINISHED, '1d')}`],
      ['{{project}} objective', OBJECTIVE],
    )
      .max(1)
      .overrideByRegexp('/ objective$/', [
        { id: 'custom.lineStyle', value: { fill: 'dash', dash: [10, 10] } },
        { id: 'custom.fillOpacity', value: 0 },
      ]),
    limits(
      lines(
        {
          title: 'Failures beyond the objective over 3 days',
          description:
            'Number of prompts that failed within the preceding 3 days, less the number that the objective of the project allows. An alert fires at 10.',
          unit: 'short',
          width: 8,
          alerts: ['EvalwatchPromptFailureBudgetBurning'],
        },
        ['{{project}}', `${moved(FAILED, DAYS)} - ${OBJECTIVE} * ${moved(FINISHED, DAYS)} > 0`],
      ),
      [10, 'red'],
    ).noValue('None'),
    bars(
      {
        title: 'Failures by error_id',
        description:
          'Reported failures of prompts by error_id. Other error_ids than the first 20 of a project are other; none stands for failures without one.',
        unit: 'short',
        width: 12,
      },
      ['{{error_id}}', `sum by (error_id) ${FAILED_WITH}`],
    ),
    bars(
      {
        title: 'Failures with new error_ids',
        description:
          'Reported failures with error_ids that the project had for the first time within the preceding 24 hours.',
        unit: 'short',
        width: 12,
        alerts: ['EvalwatchNewFailureCause'],
      },
      ['{{project}}: {{error_id}}', `${FAILED_WITH} and ${FIRST_SEEN_AGE} < 86400`],
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
    lines(
      {
        title: 'Unfinished prompts of experiments',
        description:
          'Prompts that are PENDING or RUNNING, of the newest experiments that have not finished. Needs the option metrics.experiments.',
        unit: 'short',
        width: 24,
      },
      [
        '{{project}}: {{experiment}}',
        `sum by (project, experiment) (${told('project, experiment, status', 'evalwatch_experiment_prompts', 'status=~"PENDING|RUNNING"')})`,
      ],
    ).noValue('No experiment runs, or metrics.experiments is not set'),
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

import { figures } from '../charts.ts';
import { RUNBOOKS, thresholds, withStatusColors, type Row } from '../panels.ts';
import { grown, ofTeams, staleness, told } from '../queries.ts';
import { SECONDS, table, yesOrNo } from '../tables.ts';

const failing = figures(
  {
    title: 'Projects not up',
    description:
      'Projects whose last poll failed or that were never polled, and the number for each reason. Failures of their prompts go unnoticed.',
    unit: 'short',
    width: 4,
    height: 5,
    alerts: ['EvalwatchServiceFailing', 'EvalwatchProjectPollFailing', 'EvalwatchAuthFailing'],
  },
  ['not up', `sum(1 - ${told('project', 'evalwatch_project_up')})`],
  [
    '{{reason}}',
    `count by (reason) (${told('project, reason', 'evalwatch_project_poll_failing')})`,
  ],
).thresholds(thresholds([1, 'red']));

const stalest = figures(
  {
    title: 'Stalest data',
    description:
      'Age of the oldest data of a project, as a share of the allowed age: twice the longest interval of its schedule plus 5 minutes. Over 100 % the data is stale.',
    unit: 'percentunit',
    width: 4,
    height: 5,
    alerts: ['EvalwatchDataStale'],
  },
  ['worst project', `max(${staleness()})`],
)
  .decimals(0)
  .thresholds(thresholds([0.8, 'yellow'], [1, 'red']));

const failures = figures(
  {
    title: 'Failures',
    description: 'Prompts that moved to FAILED within the time range of the dashboard.',
    unit: 'short',
    width: 4,
    height: 5,
    alerts: ['EvalwatchPromptFailed'],
  },
  [
    'moved to FAILED',
    `sum(${grown('project, from', 'evalwatch_prompt_transitions_total', '$__range', 'to="FAILED"')})`,
  ],
).thresholds(thresholds([1, 'orange']));

const unexplained = figures(
  {
    title: 'Failures without error_info',
    description:
      'Failed prompts of all projects whose error_info is not logged yet, and the longest wait among them.',
    unit: 'short',
    width: 4,
    height: 5,
    alerts: ['EvalwatchErrorInfoBacklog'],
  },
  ['waiting', 'max(evalwatch_error_info_backlog)'],
  ['longest', 'time() - max(evalwatch_error_info_backlog_oldest_timestamp_seconds)'],
)
  .thresholds(thresholds())
  .overrideByName('longest', [
    ...SECONDS,
    { id: 'thresholds', value: thresholds([1800, 'red']).build() },
  ]);

const prompts = withStatusColors(
  figures(
    {
      title: 'Prompts now',
      description: 'Prompts of the selected projects by last known status.',
      unit: 'short',
      width: 8,
      height: 5,
    },
    ['{{status}}', `sum by (status) (${told('project, status', 'evalwatch_prompts')})`],
  ),
);

const FIRING =
  'ALERTS{alertname=~"Evalwatch.*", alertname!="EvalwatchWatchdog", alertstate="firing", project=~"$project|"}';

const alerts = table(
  {
    title: 'Firing alerts',
    description:
      'Firing alerts of the selected projects and of evalwatch itself, without the watchdog, which always fires. Needs the alert rules in the same Prometheus. Click a name to open its runbook.',
    unit: 'short',
    width: 8,
    height: 9,
    alerts: ['EvalwatchWatchdog'],
  },
  {
    alertname: 'Alert',
    severity: 'Severity',
    team: 'Team',
    project: 'Project',
    status: 'Status',
  },
  [
    {
      title: 'Firing',
      expr: `max by (alertname, severity, team, project, status) (${ofTeams(FIRING)})`,
      hidden: true,
    },
  ],
)
  .noValue('No alert fires')
  .overrideByName('Alert', [
    {
      id: 'links',
      value: [{ title: 'Runbook', url: `${RUNBOOKS}/\${__value.raw}.md`, targetBlank: true }],
    },
  ]);

const projects = table(
  {
    title: 'Projects',
    description:
      'The selected projects: team, health of their polls, age of their data, and prompts by status. Click a name to open its page or the dashboard for that project alone, which is also where the link of the page leads without web.external_url.',
    unit: 'short',
    width: 16,
    height: 9,
    alerts: [
      'EvalwatchProjectPollFailing',
      'EvalwatchDataStale',
      'EvalwatchSchedulerStalled',
      'EvalwatchDatasetFailed',
    ],
  },
  { project: 'Project', team: 'Team' },
  [
    {
      title: 'Known',
      expr: told('project, team', 'evalwatch_project_info'),
      hidden: true,
    },
    {
      title: 'Last poll',
      expr: told('project', 'evalwatch_project_up'),
      properties: yesOrNo('succeeded', 'failed'),
    },
    {
      title: 'Failed in a row',
      expr: told('project', 'evalwatch_project_consecutive_poll_failures'),
    },
    {
      title: 'Last success',
      expr: `time() - ${told('project', 'evalwatch_poll_last_success_timestamp_seconds')}`,
      properties: SECONDS,
    },
    {
      title: 'Staleness',
      expr: staleness(),
      properties: [{ id: 'unit', value: 'percentunit' }],
    },
    {
      title: 'Next poll in',
      expr: `${told('project', 'evalwatch_project_next_poll_timestamp_seconds')} - time()`,
      properties: SECONDS,
    },
    ...['PENDING', 'RUNNING', 'FAILED'].map((status) => ({
      title: status,
      expr: told('project', 'evalwatch_prompts', `status="${status}"`),
    })),
    {
      title: 'Last failure',
      expr: `time() - ${told('project', 'evalwatch_prompt_last_failure_timestamp_seconds')}`,
      properties: SECONDS,
    },
    {
      title: 'Last dataset failure',
      expr: `time() - ${told('project', 'evalwatch_dataset_last_failure_timestamp_seconds')}`,
      properties: SECONDS,
    },
  ],
);

export const overview: Row = {
  title: 'Overview',
  panels: [failing, stalest, failures, unexplained, prompts, alerts, projects],
};

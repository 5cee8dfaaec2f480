export interface UsefulQuery {
  readonly question: string;
  readonly query: string;
}

/** Questions that operators ask, and what to ask Prometheus. */
export const USEFUL_QUERIES: readonly UsefulQuery[] = [
  {
    question: 'How many prompts of each project are in which status?',
    query: 'max by (project, status) (evalwatch_prompts)',
  },
  {
    question:
      'How many prompts of each project failed within the last hour? Exact, where `increase()` would extrapolate; a restart does not show, as the store goes on counting.',
    query: `sum by (project) (
  max by (project, from) (
    evalwatch_prompt_transitions_total{to="FAILED"}
    - min_over_time(evalwatch_prompt_transitions_total{to="FAILED"}[1h])
  )
)`,
  },
  {
    question: 'How long ago was the last failure of each project?',
    query: 'time() - max by (project) (evalwatch_prompt_last_failure_timestamp_seconds)',
  },
  {
    question: 'How long has the prompt waited that has waited longest?',
    query: 'time() - max by (project, status) (evalwatch_prompt_oldest_in_state_timestamp_seconds)',
  },
  {
    question: 'How long were 9 of 10 prompts RUNNING, over the last day?',
    query: `histogram_quantile(
  0.9,
  sum by (project, le) (increase(evalwatch_prompt_state_duration_seconds_bucket{status="RUNNING"}[1d]))
)`,
  },
  {
    question: 'Which projects is evalwatch blind for, and why?',
    query: 'max by (project, reason) (evalwatch_project_poll_failing)',
  },
  {
    question: 'How old is the data of each project?',
    query: 'time() - max by (project) (evalwatch_poll_last_success_timestamp_seconds)',
  },
  {
    question: 'How many requests per second does the service get, and what does it answer?',
    query: 'sum by (endpoint, code) (rate(evalwatch_api_requests_total[5m])) > 0',
  },
  {
    question: 'Who of several workers polls how many projects?',
    query: 'max by (instance) (evalwatch_worker_projects)',
  },
  {
    question: 'How many projects does none of several workers poll?',
    query: `count(max by (project) (evalwatch_project_schedule_max_interval_seconds))
- sum(evalwatch_worker_projects)`,
  },
  {
    question: 'Which share of the polls found nothing new?',
    query: `sum by (project) (rate(evalwatch_polls_unchanged_total[1h]))
/ sum by (project) (rate(evalwatch_polls_total[1h]))`,
  },
];

export interface UsefulQuery {
  readonly question: string;
  readonly query: string;
}

/** Questions of operators with the query that answers each. */
export const USEFUL_QUERIES: readonly UsefulQuery[] = [
  {
    question: 'How many prompts of each project are in which status?',
    query: 'max by (project, status) (evalwatch_prompts)',
  },
  {
    question:
      'How many prompts of each project failed within the last hour? This is exact, while `increase()` extrapolates. Neither a restart nor another owner affects it, because the total is in the store.',
    query: `sum by (project) (
  max by (project, from) (evalwatch_prompt_transitions_total{to="FAILED"})
  - min by (project, from) (min_over_time(evalwatch_prompt_transitions_total{to="FAILED"}[1h]))
)`,
  },
  {
    question: 'How long ago was the last failure of each project?',
    query: 'time() - max by (project) (evalwatch_prompt_last_failure_timestamp_seconds)',
  },
  {
    question: 'How long has the oldest waiting prompt of each project waited?',
    query: 'time() - max by (project, status) (evalwatch_prompt_oldest_in_state_timestamp_seconds)',
  },
  {
    question: 'Within which time did 90 % of the prompts leave RUNNING, over the last day?',
    query: `histogram_quantile(
  0.9,
  sum by (project, le) (increase(evalwatch_prompt_state_duration_seconds_bucket{status="RUNNING"}[1d]))
)`,
  },
  {
    question: 'Which statuses have prompts that stay longer than the limit?',
    query: `time() - max by (project, status) (evalwatch_prompt_oldest_in_state_timestamp_seconds)
> max by (project, status) (evalwatch_prompt_state_limit_seconds)`,
  },
  {
    question: 'Which projects does the team search own?',
    query: 'max by (project) (evalwatch_project_info{team="search"})',
  },
  {
    question: 'Which projects cannot be polled, and why?',
    query: 'max by (project, reason) (evalwatch_project_poll_failing)',
  },
  {
    question: 'How old is the data of each project?',
    query: 'time() - max by (project) (evalwatch_poll_last_success_timestamp_seconds)',
  },
  {
    question: 'How many requests per second does the service receive, and what does it answer?',
    query: 'sum by (endpoint, code) (rate(evalwatch_api_requests_total[5m])) > 0',
  },
  {
    question: 'How many projects does each worker poll?',
    query: 'max by (instance) (evalwatch_worker_projects)',
  },
  {
    question: 'How many projects does no worker poll?',
    query: 'max(evalwatch_projects_configured) - sum(evalwatch_worker_projects)',
  },
  {
    question: 'What share of the polls found no change?',
    query: `sum by (project) (rate(evalwatch_polls_unchanged_total[1h]))
/ sum by (project) (rate(evalwatch_polls_total[1h]))`,
  },
];

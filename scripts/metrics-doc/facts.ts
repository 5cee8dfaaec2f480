/** Facts about a metric that a scrape does not contain. */
export interface Fact {
  /** `store`: read from the store, so that it survives a restart. `process`: counted since the process started. */
  readonly source: 'store' | 'process';
  /** Event that creates the series, for a metric that a new project does not have. */
  readonly absentUntil?: string;
  /** Engine of the store, for a metric that exists with one engine only. */
  readonly onlyWith?: 'SQLite' | 'PostgreSQL';
  readonly note?: string;
}

export interface Section {
  readonly title: string;
  readonly metrics: Readonly<Record<string, Fact>>;
}

const store: Fact = { source: 'store' };
const process: Fact = { source: 'process' };
const worker: Fact = { source: 'process', onlyWith: 'PostgreSQL' };

/** Every metric of evalwatch itself, in the order of the page. */
export const SECTIONS: readonly Section[] = [
  {
    title: 'Prompts',
    metrics: {
      evalwatch_prompts: {
        ...store,
        note: 'A missing one counts until it is gone. UNKNOWN is a status that is not documented.',
      },
      evalwatch_prompts_missing: store,
      evalwatch_prompts_gone_total: store,
      evalwatch_prompt_transitions_total: {
        ...store,
        note: 'Statuses between two polls are not seen.',
      },
      evalwatch_prompt_last_failure_timestamp_seconds: {
        ...store,
        absentUntil: 'a prompt moves to FAILED',
        note: 'A prompt that was FAILED at the first poll does not count.',
      },
      evalwatch_prompt_oldest_in_state_timestamp_seconds: {
        ...store,
        absentUntil: 'a prompt is, and again when none is',
      },
      evalwatch_prompt_failures_total: {
        ...store,
        note: 'An error_id appears with its first failure ([rules](specification.md#error-ids)).',
      },
      evalwatch_prompt_error_first_seen_timestamp_seconds: {
        ...store,
        absentUntil: 'a failure is reported with an error_id',
        note: 'Not for `other` and `none`.',
      },
      evalwatch_prompt_state_duration_seconds: {
        ...process,
        note: 'As precise as the schedule.',
      },
      evalwatch_prompt_state_limit_seconds: {
        ...store,
        note: 'Changes at a reload and, if [learned](specification.md#learned-limits), at 0:00 UTC.',
      },
      evalwatch_prompt_state_typical_seconds: {
        ...store,
        absentUntil: '20 [durations](specification.md#durations) are known',
      },
    },
  },
  {
    title: 'Experiments',
    metrics: {
      evalwatch_experiment_prompts: {
        ...store,
        absentUntil:
          '`metrics.experiments` is set and the experiment runs or has moved, and again when it has finished',
        note: 'See the [rules](specification.md#scrapes) of the label.',
      },
    },
  },
  {
    title: 'Datasets',
    metrics: {
      evalwatch_datasets: { ...store, note: 'NONE means no status.' },
      evalwatch_dataset_transitions_total: store,
      evalwatch_dataset_last_failure_timestamp_seconds: {
        ...store,
        absentUntil: 'a dataset moves to FAILED',
      },
    },
  },
  {
    title: 'Projects and their polls',
    metrics: {
      evalwatch_project_up: { ...store, note: '0 before the first poll.' },
      evalwatch_project_consecutive_poll_failures: store,
      evalwatch_project_poll_failing: {
        ...store,
        absentUntil: 'a poll fails, and again when one succeeds',
      },
      evalwatch_project_paused: {
        ...process,
        absentUntil:
          'the project is [paused](specification.md#pauses), and again some minutes after it',
      },
      evalwatch_project_info: {
        ...process,
        note: 'For joins: `* on (project) group_left (team) max by (project, team) (evalwatch_project_info)`.',
      },
      evalwatch_project_max_failure_ratio: process,
      evalwatch_project_configured_timestamp_seconds: store,
      evalwatch_project_schedule_max_interval_seconds: {
        ...process,
        note: 'Calculated over 9 years. Where clocks change, it can be two hours too long, except for a schedule that runs in every hour.',
      },
      evalwatch_project_next_poll_timestamp_seconds: process,
      evalwatch_poll_last_success_timestamp_seconds: {
        ...store,
        absentUntil: 'one succeeds',
      },
      evalwatch_polls_total: process,
      evalwatch_poll_failures_total: process,
      evalwatch_polls_unchanged_total: process,
      evalwatch_poll_duration_seconds: process,
      evalwatch_item_anomalies_total: process,
    },
  },
  {
    title: 'Schedule',
    metrics: {
      evalwatch_scheduler_lag_seconds: process,
      evalwatch_scheduler_overlapped_runs_total: process,
      evalwatch_scheduler_missed_runs_total: {
        ...process,
        note: 'At most 1,000 of a project are counted at a time.',
      },
    },
  },
  {
    title: 'Evaluation Service',
    metrics: {
      evalwatch_api_requests_total: {
        ...process,
        note: 'Retries count, too.',
      },
      evalwatch_api_request_failures_total: process,
      evalwatch_api_request_duration_seconds: process,
      evalwatch_api_retries_total: process,
      evalwatch_api_response_bytes_total: process,
    },
  },
  {
    title: 'error_info of failures',
    metrics: {
      evalwatch_error_info_fetches_total: process,
      evalwatch_error_info_fetch_failures_total: process,
      evalwatch_error_info_backlog: store,
      evalwatch_error_info_backlog_oldest_timestamp_seconds: {
        ...store,
        absentUntil: 'a failure waits, and again when none does',
      },
    },
  },
  {
    title: 'Notifications',
    metrics: {
      evalwatch_notifications_total: {
        ...process,
        absentUntil: 'a receiver is configured',
        note: 'A message that was sent again after a kill counts again.',
      },
      evalwatch_notification_oldest_due_timestamp_seconds: {
        ...store,
        absentUntil: 'something waits, and again when nothing does',
        note: 'Two minutes are usual, because messages are [gathered](specification.md#notifications).',
      },
    },
  },
  {
    title: 'Store',
    metrics: {
      evalwatch_store_database_bytes: process,
      evalwatch_store_wal_bytes: { ...process, onlyWith: 'SQLite' },
      evalwatch_store_commit_duration_seconds: process,
      evalwatch_store_commit_failures_total: process,
      evalwatch_store_commits_refused_total: worker,
      evalwatch_store_info: { ...process, note: '`engine` is `sqlite` or `postgresql`.' },
    },
  },
  {
    title: 'Workers',
    metrics: {
      evalwatch_worker_projects: {
        ...worker,
        note: 'If the sum over all workers is lower than `evalwatch_projects_configured`, some are not polled.',
      },
      evalwatch_worker_lease_expiry_timestamp_seconds: {
        ...worker,
        note: 'In the past: it does not reach the database, and others poll its projects.',
      },
    },
  },
  {
    title: 'Daemon',
    metrics: {
      evalwatch_projects_configured: {
        ...process,
        note: 'With [several workers](specification.md#metrics-of-several-workers), as the database says.',
      },
      evalwatch_config_last_reload_successful: { ...process, note: '1 at the start.' },
      evalwatch_config_last_reload_success_timestamp_seconds: process,
      evalwatch_log_messages_total: process,
      evalwatch_build_info: process,
      evalwatch_web_info: {
        ...process,
        absentUntil: '`web.external_url` is set',
        note: 'For the links of alerts.',
      },
    },
  },
];

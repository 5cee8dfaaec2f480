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
        note: 'A missing prompt counts until it is gone. UNKNOWN means a status that the service does not document.',
      },
      evalwatch_prompts_missing: store,
      evalwatch_prompts_gone_total: store,
      evalwatch_prompt_transitions_total: {
        ...store,
        note: 'Statuses between two polls are not seen, so any pair is possible.',
      },
      evalwatch_prompt_last_failure_timestamp_seconds: {
        ...store,
        absentUntil: 'a prompt moves to FAILED',
        note: 'Prompts that were FAILED at the first poll of the project do not count.',
      },
      evalwatch_prompt_oldest_in_state_timestamp_seconds: {
        ...store,
        absentUntil: 'a prompt is PENDING or RUNNING, and again when none is',
      },
      evalwatch_prompt_failures_total: {
        ...store,
        note: 'Each failure counts once, when its line is written, however often that is repeated. The [rules](specification.md#error-ids) of the label. An error_id is absent until a failure with it is reported.',
      },
      evalwatch_prompt_error_first_seen_timestamp_seconds: {
        ...store,
        absentUntil: 'a failure of the project is reported with an error_id',
        note: 'For the error_ids of `evalwatch_prompt_failures_total`, without `other` and `none`.',
      },
      evalwatch_prompt_state_duration_seconds: {
        ...process,
        note: 'As precise as the schedule: a status begins and ends with the poll that finds it.',
      },
      evalwatch_prompt_state_limit_seconds: {
        ...store,
        note: 'Configured in `expect`, or [learned](specification.md#learned-limits). Absent with `off`, and while the durations could not be read since the start. Changes at a reload and at 0:00 UTC.',
      },
      evalwatch_prompt_state_typical_seconds: {
        ...store,
        absentUntil: '20 durations of the last 30 days are known',
        note: 'Once the days before today have 20 durations, today does not count.',
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
        note: 'The newest names of each project. The label is the name on one line; of one with more than 100 characters, the beginning and a digest. Experiments with the same label are counted together.',
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
      evalwatch_project_up: {
        ...store,
        note: '0 before the first poll. Up to date even while the store cannot be written.',
      },
      evalwatch_project_consecutive_poll_failures: {
        ...store,
        note: 'Up to date even while the store cannot be written.',
      },
      evalwatch_project_poll_failing: {
        ...store,
        absentUntil: 'a poll of the project fails, and again when one succeeds',
        note: 'Up to date even while the store cannot be written.',
      },
      evalwatch_project_paused: {
        ...process,
        absentUntil:
          'the project is [paused](specification.md#pauses) or in maintenance, and again some time after it',
        note: 'The alert rules leave the project out meanwhile.',
      },
      evalwatch_project_info: {
        ...process,
        note: 'For joins: `* on (project) group_left (team) max by (project, team) (evalwatch_project_info)`.',
      },
      evalwatch_project_max_failure_ratio: {
        ...process,
        note: 'The option `max_failure_ratio` of `expect`. Absent with `off`.',
      },
      evalwatch_project_configured_timestamp_seconds: store,
      evalwatch_project_schedule_max_interval_seconds: {
        ...process,
        note: 'Calculated over 9 years, so that nights, weekends, daylight saving and 29 February are included. Where clocks change by an hour, it can be up to two hours longer than the longest gap; a schedule that runs in every hour of every day has its exact gap.',
      },
      evalwatch_project_next_poll_timestamp_seconds: {
        ...process,
        note: 'With several workers, only the owner of the project exports it.',
      },
      evalwatch_poll_last_success_timestamp_seconds: {
        ...store,
        absentUntil: 'a poll of the project succeeds',
      },
      evalwatch_polls_total: process,
      evalwatch_poll_failures_total: process,
      evalwatch_polls_unchanged_total: process,
      evalwatch_poll_duration_seconds: process,
      evalwatch_item_anomalies_total: {
        ...process,
        note: 'An unchanged listing counts its items again.',
      },
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
        note: 'Retries count too. A code that is not listed counts as `other`.',
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
        absentUntil: 'a failure waits for its error_info, and again when none does',
      },
    },
  },
  {
    title: 'Notifications',
    metrics: {
      evalwatch_notifications_total: {
        ...process,
        absentUntil: 'a receiver is configured (`notify`)',
        note: 'With several workers, each counts the messages that it sent. A message that was sent again after a kill counts again.',
      },
      evalwatch_notification_oldest_due_timestamp_seconds: {
        ...store,
        absentUntil: 'a receiver has to be told something, and again when nothing waits',
        note: 'While a receiver works, at most some two minutes: what comes within a minute is [gathered](specification.md#notifications).',
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
      evalwatch_store_commits_refused_total: {
        ...worker,
        note: 'The worker drops the project, or polls it again if it still owns it.',
      },
      evalwatch_store_info: { ...process, note: '`engine` is `sqlite` or `postgresql`.' },
    },
  },
  {
    title: 'Workers',
    metrics: {
      evalwatch_worker_projects: {
        ...worker,
        note: 'Equals the number of projects whose series the same scrape has. If the sum over all workers is lower than `evalwatch_projects_configured`, some projects are not polled.',
      },
      evalwatch_worker_lease_expiry_timestamp_seconds: {
        ...worker,
        note: 'A time in the past means that the worker does not reach the database; others poll its projects.',
      },
    },
  },
  {
    title: 'Daemon',
    metrics: {
      evalwatch_projects_configured: {
        ...process,
        note: 'With several workers, what the database says is watched: the configuration of the worker that loaded its own last. While the database does not answer, the last value that was read.',
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

/** Labels of metrics that have samples only at times, depending on what the process does. */
export const LABELS_OF_FLEETING: Readonly<Record<string, readonly string[]>> = {
  nodejs_active_handles: ['type'],
  nodejs_active_requests: ['type'],
  nodejs_active_resources: ['type'],
  nodejs_gc_duration_seconds: ['kind'],
};

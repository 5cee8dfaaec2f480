// docs/metrics.md as data, written by hand: names and labels that users, alert rules and dashboards rely on.

const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN'];
const DATASET_STATUSES = [...STATUSES, 'NONE'];
const WAITING = ['PENDING', 'RUNNING'];
const ENDPOINTS = ['list_prompts', 'get_prompt', 'list_datasets'];
const CODES = '200 304 400 401 403 404 408 422 429 500 502 503 504 other'.split(' ');
const POLL_REASONS =
  'auth not_found validation rate_limited client_error server_error timeout network tls redirect invalid_response too_large store'.split(
    ' ',
  );
const REQUEST_REASONS = 'timeout network tls too_large invalid_response redirect'.split(' ');

type LabelSet = Readonly<Record<string, string>>;

export interface MetricFact {
  readonly name: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly from: 'store' | 'process';
  /** One set of series per project, per project that watches datasets, or in all. */
  readonly per: 'project' | 'datasets' | 'process';
  /** Label sets besides the project; `{}` if there are none. */
  readonly labels: readonly LabelSet[];
  /** Bounds of a histogram's buckets. */
  readonly buckets: readonly string[];
  /** Whether it may be absent until something has happened. */
  readonly absentAtFirst: boolean;
}

type Facts = Partial<Pick<MetricFact, 'labels' | 'absentAtFirst'>> & { readonly buckets?: string };

function fact(
  name: string,
  type: MetricFact['type'],
  from: MetricFact['from'],
  per: MetricFact['per'],
  { labels = [{}], buckets = '', absentAtFirst = false }: Facts = {},
): MetricFact {
  const bounds = type === 'histogram' ? [...buckets.split(' '), '+Inf'] : [];
  return { name: `evalwatch_${name}`, type, from, per, labels, buckets: bounds, absentAtFirst };
}

function one(label: string, values: readonly string[]): readonly LabelSet[] {
  return values.map((value) => ({ [label]: value }));
}

function two(
  [first, firstValues]: readonly [string, readonly string[]],
  [second, secondValues]: readonly [string, readonly string[]],
): readonly LabelSet[] {
  return firstValues.flatMap((value) =>
    secondValues.map((other) => ({ [first]: value, [second]: other })),
  );
}

function pairs(statuses: readonly string[]): readonly LabelSet[] {
  return two(['from', ['NEW', ...statuses]], ['to', statuses]).filter(
    ({ from, to }) => from !== to,
  );
}

const absent = { absentAtFirst: true };

/**
 * Every metric of evalwatch with a SQLite store, except `evalwatch_build_info` and `evalwatch_store_info`, whose labels
 * differ from build to build.
 */
export const METRICS: readonly MetricFact[] = [
  fact('prompts', 'gauge', 'store', 'project', { labels: one('status', STATUSES) }),
  fact('prompts_missing', 'gauge', 'store', 'project'),
  fact('prompt_transitions_total', 'counter', 'store', 'project', { labels: pairs(STATUSES) }),
  fact('prompt_last_failure_timestamp_seconds', 'gauge', 'store', 'project', absent),
  fact('prompts_gone_total', 'counter', 'store', 'project'),
  fact('prompt_failures_total', 'counter', 'store', 'project', {
    labels: one('error_id', ['none', 'other']),
  }),
  fact('prompt_error_first_seen_timestamp_seconds', 'gauge', 'store', 'project', {
    labels: [{ error_id: 'MODEL_TIMEOUT' }],
    absentAtFirst: true,
  }),
  fact('prompt_state_duration_seconds', 'histogram', 'process', 'project', {
    labels: one('status', WAITING),
    buckets: '60 300 900 3600 14400 86400',
  }),
  fact('prompt_oldest_in_state_timestamp_seconds', 'gauge', 'store', 'project', {
    labels: one('status', WAITING),
    absentAtFirst: true,
  }),
  fact('prompt_state_limit_seconds', 'gauge', 'store', 'project', {
    labels: one('status', WAITING),
  }),
  fact('prompt_state_typical_seconds', 'gauge', 'store', 'project', {
    labels: one('status', WAITING),
    absentAtFirst: true,
  }),
  fact('project_info', 'gauge', 'process', 'project', { labels: [{ team: '' }] }),
  fact('project_max_failure_ratio', 'gauge', 'process', 'project'),
  fact('datasets', 'gauge', 'store', 'datasets', { labels: one('status', DATASET_STATUSES) }),
  fact('dataset_transitions_total', 'counter', 'store', 'datasets', {
    labels: pairs(DATASET_STATUSES),
  }),
  fact('dataset_last_failure_timestamp_seconds', 'gauge', 'store', 'datasets', absent),
  fact('project_up', 'gauge', 'store', 'project'),
  fact('project_configured_timestamp_seconds', 'gauge', 'store', 'project'),
  fact('project_schedule_max_interval_seconds', 'gauge', 'process', 'project'),
  fact('project_next_poll_timestamp_seconds', 'gauge', 'process', 'project'),
  fact('project_consecutive_poll_failures', 'gauge', 'store', 'project'),
  fact('project_poll_failing', 'gauge', 'store', 'project', {
    labels: one('reason', POLL_REASONS),
    absentAtFirst: true,
  }),
  fact('polls_total', 'counter', 'process', 'project'),
  fact('poll_failures_total', 'counter', 'process', 'project', {
    labels: one('reason', POLL_REASONS),
  }),
  fact('polls_unchanged_total', 'counter', 'process', 'project'),
  fact('poll_last_success_timestamp_seconds', 'gauge', 'store', 'project', absent),
  fact('poll_duration_seconds', 'histogram', 'process', 'process', {
    buckets: '0.05 0.1 0.25 0.5 1 2.5 5 10 30 60',
  }),
  fact('api_requests_total', 'counter', 'process', 'process', {
    labels: two(['endpoint', ENDPOINTS], ['code', CODES]),
  }),
  fact('api_request_failures_total', 'counter', 'process', 'process', {
    labels: two(['endpoint', ENDPOINTS], ['reason', REQUEST_REASONS]),
  }),
  fact('api_request_duration_seconds', 'histogram', 'process', 'process', {
    labels: one('endpoint', ENDPOINTS),
    buckets: '0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10',
  }),
  fact('api_retries_total', 'counter', 'process', 'process', {
    labels: one('endpoint', ENDPOINTS),
  }),
  fact('api_response_bytes_total', 'counter', 'process', 'process', {
    labels: one('endpoint', ENDPOINTS),
  }),
  fact('item_anomalies_total', 'counter', 'process', 'project', {
    labels: one('reason', ['invalid', 'unknown_status', 'duplicate_id']),
  }),
  fact('error_info_fetches_total', 'counter', 'process', 'process'),
  fact('error_info_fetch_failures_total', 'counter', 'process', 'process'),
  fact('error_info_backlog', 'gauge', 'store', 'process'),
  fact('error_info_backlog_oldest_timestamp_seconds', 'gauge', 'store', 'process', absent),
  fact('store_database_bytes', 'gauge', 'process', 'process'),
  fact('store_wal_bytes', 'gauge', 'process', 'process'),
  fact('store_commit_duration_seconds', 'histogram', 'process', 'process', {
    buckets: '0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.5 1 5',
  }),
  fact('store_commit_failures_total', 'counter', 'process', 'process', {
    labels: one('reason', ['full', 'io', 'busy', 'corrupt', 'replaced', 'other']),
  }),
  fact('scheduler_overlapped_runs_total', 'counter', 'process', 'project'),
  fact('scheduler_missed_runs_total', 'counter', 'process', 'project'),
  fact('scheduler_lag_seconds', 'histogram', 'process', 'process', {
    buckets: '0.01 0.05 0.1 0.5 1 5 10 30 60 300',
  }),
  fact('web_info', 'gauge', 'process', 'process', {
    labels: [{ external_url: 'https://watch.example.com' }],
    absentAtFirst: true,
  }),
  fact('projects_configured', 'gauge', 'process', 'process'),
  fact('config_last_reload_successful', 'gauge', 'process', 'process'),
  fact('config_last_reload_success_timestamp_seconds', 'gauge', 'process', 'process'),
  fact('log_messages_total', 'counter', 'process', 'process', {
    labels: one('level', ['debug', 'info', 'warn', 'error']),
  }),
];

/** Additional metrics of a worker, which lacks `evalwatch_store_wal_bytes`. */
export const WORKER_METRICS: readonly MetricFact[] = [
  fact('store_commits_refused_total', 'counter', 'process', 'process', {
    labels: one('reason', ['epoch', 'version']),
  }),
  fact('worker_projects', 'gauge', 'process', 'process'),
  fact('worker_lease_expiry_timestamp_seconds', 'gauge', 'process', 'process'),
];

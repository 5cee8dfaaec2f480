import { Counter, Gauge, Histogram, collectDefaultMetrics, type Registry } from 'prom-client';
import { STORE_FAILURE_REASONS } from '../monitor/errors.ts';
import { ENDPOINTS, REFUSAL_REASONS, REQUEST_FAILURE_REASONS } from '../monitor/events.ts';
import { LOG_LEVELS } from '../domain/log-level.ts';

const STATUS_CODES = new Set(
  [200, 304, 400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 504].map(String),
);

/**
 * Returns the value of the `code` label: the status code if it is in the list, otherwise `other`. This limits the number of
 * series that a service can cause.
 */
export function codeLabel(statusCode: number): string {
  const code = String(statusCode);
  return STATUS_CODES.has(code) ? code : 'other';
}

export interface BuildInfo {
  readonly version: string;
  readonly revision: string;
  readonly storeInfo: { readonly engine: 'sqlite' | 'postgresql'; readonly version: string };
}

export type ProcessMetrics = ReturnType<typeof createProcessMetrics>;

/**
 * Creates the metrics that have no label `project`, and sets every series to 0 (docs/metrics.md). Includes prom-client's own metrics
 * of the process. `startedAt` in epoch ms counts as the first successful reload. Metrics that exist only
 * with several workers are registered only if `isWorker`.
 */
export function createProcessMetrics(
  registry: Registry,
  build: BuildInfo,
  { startedAt, isWorker }: { readonly startedAt: number; readonly isWorker: boolean },
) {
  const registers = [registry];
  // In the order of the exposition.
  const metrics = {
    ...createPollMetrics(registers),
    ...createServiceMetrics(registers),
    ...createStoreMetrics(registers, isWorker),
    ...createDaemonMetrics(registers),
  };
  metrics.storeInfo.set(build.storeInfo, 1);
  metrics.configReloadSuccessTime.set(startedAt / 1000);
  metrics.buildInfo.set(
    {
      version: build.version,
      revision: build.revision,
      node_version: process.versions.node,
      sqlite_version: build.storeInfo.engine === 'sqlite' ? build.storeInfo.version : '',
    },
    1,
  );

  collectDefaultMetrics({ register: registry });
  // promtool objects to gauges whose name ends like a counter's.
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}_total`);
  }
  return metrics;
}

function createPollMetrics(registers: Registry[]) {
  return {
    pollDuration: new Histogram({
      name: 'evalwatch_poll_duration_seconds',
      help: 'Duration of polls in seconds, including waits for a slot and for the rate limit.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
  };
}

function createServiceMetrics(registers: Registry[]) {
  const metrics = {
    apiRequests: new Counter({
      name: 'evalwatch_api_requests_total',
      help: 'Responses of the Evaluation Service by endpoint and HTTP status code.',
      labelNames: ['endpoint', 'code'],
      registers,
    }),
    apiRequestFailures: new Counter({
      name: 'evalwatch_api_request_failures_total',
      help: 'Requests to the Evaluation Service without a usable response, by reason.',
      labelNames: ['endpoint', 'reason'],
      registers,
    }),
    apiRequestDuration: new Histogram({
      name: 'evalwatch_api_request_duration_seconds',
      help: 'Seconds from sending a request to the end of its response body, or to its failure, without the time for which evalwatch did not read on.',
      labelNames: ['endpoint'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    apiRetries: new Counter({
      name: 'evalwatch_api_retries_total',
      help: 'Requests sent again after a failed attempt, or to read a listing whole.',
      labelNames: ['endpoint'],
      registers,
    }),
    apiResponseBytes: new Counter({
      name: 'evalwatch_api_response_bytes_total',
      help: 'Bytes of response bodies read, after decompression.',
      labelNames: ['endpoint'],
      registers,
    }),
    errorInfoFetches: new Counter({
      name: 'evalwatch_error_info_fetches_total',
      help: 'Attempts to get the error_info of a failed prompt.',
      registers,
    }),
    errorInfoFetchFailures: new Counter({
      name: 'evalwatch_error_info_fetch_failures_total',
      help: 'Failed attempts to get the error_info of a failed prompt.',
      registers,
    }),
  };
  for (const endpoint of ENDPOINTS) {
    for (const code of [...STATUS_CODES, 'other']) metrics.apiRequests.inc({ endpoint, code }, 0);
    for (const reason of REQUEST_FAILURE_REASONS) {
      metrics.apiRequestFailures.inc({ endpoint, reason }, 0);
    }
    metrics.apiRequestDuration.zero({ endpoint });
    metrics.apiRetries.inc({ endpoint }, 0);
    metrics.apiResponseBytes.inc({ endpoint }, 0);
  }
  return metrics;
}

function createStoreMetrics(registers: Registry[], isWorker: boolean) {
  const metrics = {
    storeCommitDuration: new Histogram({
      name: 'evalwatch_store_commit_duration_seconds',
      help: 'Duration of write transactions in seconds, fsync included.',
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
      registers,
    }),
    storeCommitFailures: new Counter({
      name: 'evalwatch_store_commit_failures_total',
      help: 'Failed writes of the store, and failed reads for polls, failure reports and scrapes, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    storeCommitsRefused: new Counter({
      name: 'evalwatch_store_commits_refused_total',
      help: 'Write transactions refused by reason: another worker owns the project, or committed it first.',
      labelNames: ['reason'],
      registers: isWorker ? registers : [],
    }),
    storeInfo: new Gauge({
      name: 'evalwatch_store_info',
      help: 'Always 1; the labels show the engine of the store and its version.',
      labelNames: ['engine', 'version'],
      registers,
    }),
  };
  for (const reason of STORE_FAILURE_REASONS) metrics.storeCommitFailures.inc({ reason }, 0);
  for (const reason of REFUSAL_REASONS) metrics.storeCommitsRefused.inc({ reason }, 0);
  return metrics;
}

function createDaemonMetrics(registers: Registry[]) {
  const metrics = {
    schedulerLag: new Histogram({
      name: 'evalwatch_scheduler_lag_seconds',
      help: 'Seconds from when a poll was due until its first request was sent.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
      registers,
    }),
    configReloadSuccessful: new Gauge({
      name: 'evalwatch_config_last_reload_successful',
      help: 'Whether the last attempt to load the configuration succeeded, 1 or 0.',
      registers,
    }),
    configReloadSuccessTime: new Gauge({
      name: 'evalwatch_config_last_reload_success_timestamp_seconds',
      help: 'When the configuration was last loaded with success, Unix time in seconds.',
      registers,
    }),
    logMessages: new Counter({
      name: 'evalwatch_log_messages_total',
      help: 'Log lines written, by level.',
      labelNames: ['level'],
      registers,
    }),
    buildInfo: new Gauge({
      name: 'evalwatch_build_info',
      help: 'Always 1; the labels show the running version.',
      labelNames: ['version', 'revision', 'node_version', 'sqlite_version'],
      registers,
    }),
  };
  for (const level of LOG_LEVELS) metrics.logMessages.inc({ level }, 0);
  metrics.configReloadSuccessful.set(1);
  return metrics;
}

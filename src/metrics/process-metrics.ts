import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { LOG_LEVELS, type LogLevel } from '../domain/options.ts';
import { STORE_FAILURE_REASONS } from '../monitor/errors.ts';
import { ENDPOINTS, REQUEST_FAILURE_REASONS, type MonitorEvent } from '../monitor/events.ts';

export interface ProcessInfo {
  readonly version: string;
  readonly revision: string;
  readonly storeInfo: { readonly engine: 'sqlite' | 'postgresql'; readonly version: string };
  /** Number of log lines written, which grows. */
  readonly logLines: Readonly<Record<LogLevel, number>>;
}

/** Status codes that have a label of their own. All others are `other`, so that a service causes few series. */
const STATUS_CODES = new Set(
  [200, 304, 400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 504].map(String),
);

/** The metrics that have no label `project` and that this process counts, and prom-client's own of the process. */
export class ProcessMetrics {
  readonly #registry = new Registry();
  readonly #registers = [this.#registry];

  // In the order of the exposition.
  readonly #pollDuration = new Histogram({
    name: 'evalwatch_poll_duration_seconds',
    help: 'Duration of polls in seconds, including waits for a slot and for the rate limit.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: this.#registers,
  });
  readonly #apiRequests = new Counter({
    name: 'evalwatch_api_requests_total',
    help: 'Responses of the Evaluation Service by endpoint and HTTP status code.',
    labelNames: ['endpoint', 'code'],
    registers: this.#registers,
  });
  readonly #apiRequestFailures = new Counter({
    name: 'evalwatch_api_request_failures_total',
    help: 'Requests to the Evaluation Service without a usable response, by reason.',
    labelNames: ['endpoint', 'reason'],
    registers: this.#registers,
  });
  readonly #apiRequestDuration = new Histogram({
    name: 'evalwatch_api_request_duration_seconds',
    help: 'Seconds from sending a request to the end of its response body, or to its failure, without the time for which evalwatch did not read on.',
    labelNames: ['endpoint'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: this.#registers,
  });
  readonly #apiRetries = new Counter({
    name: 'evalwatch_api_retries_total',
    help: 'Requests sent again after a failed attempt, or to read a listing whole.',
    labelNames: ['endpoint'],
    registers: this.#registers,
  });
  readonly #apiResponseBytes = new Counter({
    name: 'evalwatch_api_response_bytes_total',
    help: 'Bytes of response bodies read, after decompression.',
    labelNames: ['endpoint'],
    registers: this.#registers,
  });
  readonly #errorInfoFetches = new Counter({
    name: 'evalwatch_error_info_fetches_total',
    help: 'Attempts to get the error_info of a failed prompt.',
    registers: this.#registers,
  });
  readonly #errorInfoFetchFailures = new Counter({
    name: 'evalwatch_error_info_fetch_failures_total',
    help: 'Failed attempts to get the error_info of a failed prompt.',
    registers: this.#registers,
  });
  readonly #storeCommitDuration = new Histogram({
    name: 'evalwatch_store_commit_duration_seconds',
    help: 'Duration of write transactions in seconds, fsync included.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
    registers: this.#registers,
  });
  readonly #storeCommitFailures = new Counter({
    name: 'evalwatch_store_commit_failures_total',
    help: 'Failed writes of the store, and failed reads for polls, failure reports and scrapes, by reason.',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly #storeCommitsRefused = new Counter({
    name: 'evalwatch_store_commits_refused_total',
    help: 'Write transactions refused because another worker has owned the project since its poll began.',
    registers: this.#registers,
  });
  readonly #storeInfo = new Gauge({
    name: 'evalwatch_store_info',
    help: 'Always 1; the labels show the engine of the store and its version.',
    labelNames: ['engine', 'version'],
    registers: this.#registers,
  });
  readonly #schedulerLag = new Histogram({
    name: 'evalwatch_scheduler_lag_seconds',
    help: 'Seconds from when a poll was due until its first request was sent.',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
    registers: this.#registers,
  });
  readonly #configReloadSuccessful = new Gauge({
    name: 'evalwatch_config_last_reload_successful',
    help: 'Whether the last attempt to load the configuration succeeded, 1 or 0.',
    registers: this.#registers,
  });
  readonly #configReloadSuccessTime = new Gauge({
    name: 'evalwatch_config_last_reload_success_timestamp_seconds',
    help: 'When the configuration was last loaded with success, Unix time in seconds.',
    registers: this.#registers,
  });
  readonly #logMessages = new Counter({
    name: 'evalwatch_log_messages_total',
    help: 'Log lines written, by level.',
    labelNames: ['level'],
    registers: this.#registers,
  });
  readonly #buildInfo = new Gauge({
    name: 'evalwatch_build_info',
    help: 'Always 1; the labels show the running version.',
    labelNames: ['version', 'revision', 'node_version', 'sqlite_version'],
    registers: this.#registers,
  });

  readonly #logLines: ProcessInfo['logLines'];
  #isConfigLoaded = true;

  /** Every series begins at 0. The process starts with a configuration that was loaded `at`, epoch ms. */
  constructor(info: ProcessInfo, isWorker: boolean, at: number) {
    const { version, revision, storeInfo, logLines } = info;
    this.#logLines = logLines;
    for (const endpoint of ENDPOINTS) {
      for (const code of [...STATUS_CODES, 'other']) this.#apiRequests.inc({ endpoint, code }, 0);
      for (const reason of REQUEST_FAILURE_REASONS) {
        this.#apiRequestFailures.inc({ endpoint, reason }, 0);
      }
      this.#apiRequestDuration.zero({ endpoint });
      this.#apiRetries.inc({ endpoint }, 0);
      this.#apiResponseBytes.inc({ endpoint }, 0);
    }
    for (const reason of STORE_FAILURE_REASONS) this.#storeCommitFailures.inc({ reason }, 0);
    if (!isWorker) this.#registry.removeSingleMetric('evalwatch_store_commits_refused_total');
    this.#storeInfo.set(storeInfo, 1);
    this.#loaded(at);
    const sqlite_version = storeInfo.engine === 'sqlite' ? storeInfo.version : '';
    const node_version = process.versions.node;
    this.#buildInfo.set({ version, revision, node_version, sqlite_version }, 1);

    collectDefaultMetrics({ register: this.#registry });
    // promtool objects to gauges whose name ends like a counter's.
    for (const what of ['handles', 'requests', 'resources']) {
      this.#registry.removeSingleMetric(`nodejs_active_${what}_total`);
    }
  }

  /** @param at epoch ms */
  observe(event: MonitorEvent, at: number): void {
    if (event.type === 'poll.finished') {
      this.#pollDuration.observe(event.durationMs / 1000);
    } else if (event.type === 'error_info.fetched') {
      this.#errorInfoFetches.inc();
      if (!event.ok) this.#errorInfoFetchFailures.inc();
    } else if (event.type === 'api.responded') {
      const code = String(event.statusCode);
      const label = STATUS_CODES.has(code) ? code : 'other';
      this.#apiRequests.inc({ endpoint: event.endpoint, code: label });
    } else if (event.type === 'api.request_finished') {
      const { endpoint, failure: reason } = event;
      this.#apiRequestDuration.observe({ endpoint }, event.durationMs / 1000);
      this.#apiResponseBytes.inc({ endpoint }, event.bytes);
      if (reason !== undefined) this.#apiRequestFailures.inc({ endpoint, reason });
    } else if (event.type === 'api.retry_sent') {
      this.#apiRetries.inc({ endpoint: event.endpoint });
    } else if (event.type === 'store.committed') {
      this.#storeCommitDuration.observe(event.durationMs / 1000);
    } else if (event.type === 'store.commit_failed') {
      this.#storeCommitFailures.inc({ reason: event.reason });
    } else if (event.type === 'store.commit_refused') {
      this.#storeCommitsRefused.inc();
    } else if (event.type === 'scheduler.started_poll') {
      this.#schedulerLag.observe(event.lagMs / 1000);
    } else if (event.type === 'config.reloaded') {
      this.#loaded(at);
    } else if (event.type === 'config.reload_failed') {
      this.#isConfigLoaded = false;
    }
  }

  #loaded(at: number): void {
    this.#isConfigLoaded = true;
    this.#configReloadSuccessTime.set(at / 1000);
  }

  async render(isWebConfigValid: boolean): Promise<string> {
    this.#configReloadSuccessful.set(this.#isConfigLoaded && isWebConfigValid ? 1 : 0);
    this.#logMessages.reset();
    for (const level of LOG_LEVELS) this.#logMessages.inc({ level }, this.#logLines[level]);
    // prom-client writes a spelling that some parsers reject.
    return (await this.#registry.metrics()).replaceAll(/ Nan$/gm, ' NaN');
  }
}

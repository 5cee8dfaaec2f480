import { setFlagsFromString } from 'node:v8';
import type { Config } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import { Metrics } from '../metrics/metrics.ts';
import { unlessStoreFails } from '../monitor/errors.ts';
import { NEVER_POLLED } from '../monitor/memory.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { EventFeed } from '../web/events/feed.ts';
import type { ReloadResult } from '../web/content.ts';
import { assertCanListen } from '../web/server.ts';
import { type Engine, openEngine } from './engine.ts';
import { Heartbeat } from './heartbeat.ts';
import { endProcess, version } from './process.ts';
import { startMaintenance } from './maintenance.ts';
import { Reload, warnIfMounted } from './reload.ts';
import { Scheduling } from './scheduling.ts';
import { MonitorWatch, startWeb } from './web.ts';
import { WebProtection } from './web-protection.ts';

/** Time that requests in flight have when the daemon stops; Docker kills after 10 s (docs/specification.md#stopping). */
const GRACE_MS = 8000;
/** How often the store is read for events that other workers committed, while a client follows the events. */
const FOLLOW_INTERVAL_MS = 1000;
/**
 * Has V8 collect the heap of a worker once it has twice the size that the last collection left, instead of over three times: the
 * memory of the largest heap is kept (docs/design-decisions.md#node-is-started-with---max-semi-space-size2).
 */
const WORKER_HEAP_FLAG = '--heap-growing-percent=100';

export interface Daemon {
  /** URL of the HTTP interface. */
  readonly url: string;
  /** Loads the configuration again and applies it whole, or not at all (docs/specification.md#reload). */
  reload(): Promise<ReloadResult>;
  /** Stops in an orderly way (docs/specification.md#stopping); resolves when everything is closed. */
  stop(): Promise<void>;
}

export interface DaemonOptions {
  readonly config: Config;
  /** Reads the configuration again for a reload. @throws {ConfigError} */
  readonly loadConfig: () => Promise<Config>;
  /** Whether the daemon reloads the configuration when its files change. */
  readonly watchConfig?: boolean;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly revision: string;
  /** Aborts the start, which then rejects with the signal's reason at its next step. */
  readonly signal?: AbortSignal;
  /** Receive every event, after log and metrics. */
  readonly observers?: readonly Observer[];
}

/**
 * Opens, connects and starts the parts of the daemon. If one step fails, closes everything that was opened before.
 * @throws {ConfigError} when the web configuration cannot be used
 * @throws {StoreError} when the store cannot be opened or another process holds it
 * @throws {Error} with a system `code` when the server cannot listen on the web address; no store is created then
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, loadConfig, logger, clock, revision, signal, observers = [] } = options;
  const { configFile: file } = config.web;
  const protection = file ? await WebProtection.open(file, logger) : undefined;
  // A daemon that cannot listen leaves no new store behind.
  await assertCanListen(config.web);
  await using opened = new AsyncDisposableStack();
  const engine = await openEngine({ config, logger, clock });
  opened.defer(() => engine.close());
  signal?.throwIfAborted();
  const { store, worker, reporter } = engine;
  if (worker !== undefined) setFlagsFromString(WORKER_HEAP_FLAG);

  const heartbeat = new Heartbeat(engine, logger, clock);
  const scheduling = new Scheduling(engine, clock, heartbeat);
  const metrics = createEngineMetrics(engine, scheduling, protection, { clock, revision });
  const feed = new EventFeed(store, worker && FOLLOW_INTERVAL_MS);
  const monitor = new MonitorWatch(clock);
  logger.onLine((level) => metrics.countLogLine(level));
  for (const observer of [metrics.observe, feed.observe, monitor.observe, ...observers]) {
    engine.observe(observer);
  }
  const configure = async (next: Config) => {
    await engine.configure(next);
    metrics.setProjects(
      Array.from(engine.projects().values(), (project) => ({
        ...project,
        health: engine.health(project.id) ?? NEVER_POLLED,
      })),
    );
  };
  await configure(config);
  signal?.throwIfAborted();

  const reload = new Reload({
    config: () => engine.config(),
    loadConfig: async () => {
      const next = await loadConfig();
      const webError = await protection?.look();
      if (webError !== undefined) throw webError;
      return next;
    },
    logger,
    clock,
    apply: async (next) => {
      await configure(next);
      scheduling.apply();
      await unlessStoreFails(() => engine.expectations.refresh());
    },
    onResult: (result) => {
      metrics.reloaded(result.ok);
      monitor.reloaded(result);
    },
  });

  let isStarted = false;
  const isScheduling = () => isStarted && (worker === undefined || worker.isConnected());
  const web = await startWeb({
    config,
    engine,
    scheduling,
    metrics,
    feed,
    monitor,
    reload,
    protection,
    logger,
    clock,
    isScheduling,
  });
  opened.defer(() => web.close());
  signal?.throwIfAborted();

  await worker?.start((error) => {
    logger.warn(
      { event: 'worker.waiting', reason: error.reason, err: error },
      'The database cannot be used yet, so this worker polls nothing; it tries again every second',
    );
  });
  scheduling.apply();
  const started = { version, pid: process.pid, url: web.url, projects: config.projects.length };
  logger.info({ event: 'daemon.started', ...started }, 'Daemon started');
  reporter.start();
  scheduling.start();
  heartbeat.start();
  void warnIfMounted(config.file, logger);
  startMaintenance(engine, clock, [
    ...(protection ? [() => protection.look()] : []),
    ...(options.watchConfig ? [() => reload.look()] : []),
  ]);
  isStarted = true;

  const closing = opened.move();
  return {
    url: web.url,
    reload: () => reload.run(),
    stop: async () => {
      isStarted = false;
      heartbeat.stop();
      scheduling.stop();
      engine.shutdown.begin(GRACE_MS);
      const reported = reporter.stop();
      // Polls are committed and failures reported under the lease, so the lease ends after them.
      const ended = Promise.all([scheduling.idle(), reported]);
      await Promise.all([ended, worker?.stop(ended)]);
      await closing.disposeAsync();
      logger.info({ event: 'daemon.stopped' }, 'Daemon stopped');
    },
  };
}

/** Creates the metrics of the engine and its schedules. They observe nothing yet. */
function createEngineMetrics(
  engine: Engine,
  scheduling: Scheduling,
  protection: WebProtection | undefined,
  { clock, revision }: { readonly clock: Clock; readonly revision: string },
): Metrics {
  const { store, worker, opened } = engine;
  const metrics = new Metrics({
    version,
    revision,
    storeInfo: opened.info,
    ...(worker && { worker }),
    clock,
    store: {
      snapshot: () => opened.shared?.store.ownedSnapshot() ?? store.snapshot(),
      size: () => store.size(),
    },
    schedule: (project) => scheduling.schedule(project),
    expectationsOf: engine.expectations.of,
    externalUrl: () => engine.config().web.externalUrl,
    isWebConfigValid: protection && (() => protection.isValid()),
    emit: engine.emit,
    onError: endProcess,
  });
  worker?.onChange((change) => metrics.changeOwnership(change));
  return metrics;
}

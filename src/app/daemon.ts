import { setFlagsFromString } from 'node:v8';
import type { Config, ProjectConfig } from '../config/config.ts';
import { inForce } from '../config/in-force.ts';
import { createRequestFailureLog } from '../log/lines.ts';
import type { Logger } from '../log/logger.ts';
import { Metrics } from '../metrics/metrics.ts';
import type { Observer } from '../monitor/events.ts';
import { NEVER_POLLED } from '../monitor/memory.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ReloadResult, ShownProject } from '../web/content.ts';
import { EventFeed } from '../web/events/feed.ts';
import { MonitorWatch } from '../web/monitor-watch.ts';
import { assertCanListen, startWebServer } from '../web/server.ts';
import { type Engine, openEngine } from './engine.ts';
import { Heartbeat } from './heartbeat.ts';
import { learnFirst, startMaintenance } from './maintenance.ts';
import { Notifier } from './notifier.ts';
import { version } from './process.ts';
import { Reload, warnIfMounted } from './reload.ts';
import { Scheduling } from './scheduling.ts';
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
  const { config, logger, clock } = options;
  const { configFile: file } = config.web;
  const protection = file ? await WebProtection.open(file, logger) : undefined;
  // A daemon that cannot listen leaves no new store behind.
  await assertCanListen(config.web);
  await using opened = new AsyncDisposableStack();
  const engine = await openEngine({ config, logger, clock });
  opened.defer(() => engine.close());
  const { store, worker, expectations } = engine;
  if (worker !== undefined) setFlagsFromString(WORKER_HEAP_FLAG);

  const heartbeat = new Heartbeat(engine, logger, clock);
  const scheduling = new Scheduling(engine, clock, heartbeat);
  const notifier = new Notifier(engine, clock);
  const metrics = new Metrics({
    version,
    revision: options.revision,
    storeInfo: engine.opened.info,
    logLines: logger.written,
    ...(worker && { worker }),
    clock,
    store: {
      snapshot: () => engine.opened.shared?.store.ownedSnapshot() ?? store.snapshot(),
      size: () => store.size(),
    },
    experiments: (projects) => {
      const { experiments: limit } = engine.config.metrics;
      return limit > 0 ? store.unfinishedExperiments(projects, limit) : undefined;
    },
    healthOf: (id) => engine.health(id) ?? NEVER_POLLED,
    schedule: (id) => scheduling.schedule(id),
    isQuiet: (id) => engine.isQuiet(id),
    expectationsOf: expectations.of,
    externalUrl: () => engine.config.web.externalUrl,
    receivers: () => notifier.states(),
    isWebConfigValid: protection && (() => protection.isValid()),
    emit: engine.emit,
  });
  worker?.onChange((change) => metrics.changeOwnership(change));
  const feed = new EventFeed(store, worker && FOLLOW_INTERVAL_MS);
  const monitor = new MonitorWatch(clock);
  const observers = [metrics.observe, feed.observe, monitor.observe];
  for (const observer of [...observers, ...(options.observers ?? [])]) engine.observe(observer);
  await engine.configure(config);

  const reload = new Reload(engine, scheduling, clock, async () => {
    const next = await options.loadConfig();
    const webError = await protection?.look();
    if (webError !== undefined) throw webError;
    return next;
  });
  const learned = learnFirst(engine, clock);
  const shown = (project: ProjectConfig) => shownProject(project, engine, scheduling);
  const web = await startWebServer(
    {
      version,
      clock,
      store,
      snapshot: (project) => engine.snapshot(project),
      retentionMs: config.store.retentionMs,
      feed,
      renderMetrics: async () => {
        await learned;
        return await metrics.render();
      },
      isScheduling: () => scheduling.isActive(),
      isReady: () => scheduling.isActive() && engine.opened.isInPlace(),
      isLifecycleEnabled: () => engine.config.web.enableLifecycle,
      promptUrl: () => engine.config.promptUrl,
      config: () => inForce(engine.config),
      projects: () => Array.from(engine.projects.values(), shown),
      project: (id) => {
        const project = engine.projects.get(id);
        return project && shown(project);
      },
      monitor: () => ({ ...monitor.state(), receivers: notifier.states() }),
      reload: () => reload.run(),
      pollNow: (project) => scheduling.pollNow(project),
      onBug: createRequestFailureLog(logger),
    },
    { ...config.web, allowedHosts: () => engine.config.web.allowedHosts },
    protection,
  );
  opened.defer(() => web.close());

  await worker?.start();
  const started = { version, pid: process.pid, url: web.url, projects: config.projects.length };
  logger.info({ event: 'daemon.started', ...started }, 'Daemon started');
  scheduling.start();
  heartbeat.start();
  notifier.start();
  void warnIfMounted(config.file, logger);
  startMaintenance(engine, clock, [
    ...(protection ? [() => protection.look()] : []),
    ...(options.watchConfig ? [() => reload.look()] : []),
  ]);

  const closing = opened.move();
  return {
    url: web.url,
    reload: () => reload.run(),
    stop: async () => {
      heartbeat.stop();
      await Promise.all([scheduling.stop(GRACE_MS), notifier.stop()]);
      await closing.disposeAsync();
      logger.info({ event: 'daemon.stopped' }, 'Daemon stopped');
    },
  };
}

function shownProject(
  project: ProjectConfig,
  engine: Engine,
  scheduling: Scheduling,
): ShownProject {
  const { id, datasets, team, expect, idleSchedule } = project;
  const health = engine.health(id);
  return {
    id,
    datasets,
    team,
    expect,
    health: health ?? NEVER_POLLED,
    isHealthKnown: health !== undefined,
    isIdle: engine.scheduleOf(project) === idleSchedule,
    expectations: engine.expectations.of(id),
    pause: engine.pauseOf(project),
    nextPollAt: scheduling.next(id),
  };
}

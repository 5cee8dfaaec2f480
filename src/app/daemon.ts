import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { openEngine } from './engine.ts';
import type { Secrets } from '../evaluation-api/secrets.ts';
import { endProcess } from './lifecycle.ts';
import type { Logger } from '../log/logger.ts';
import { createRequestFailureLog } from '../log/request-failures.ts';
import { createMetrics } from '../metrics/metrics.ts';
import { StoreError } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { FailureReporter } from '../monitor/failure-reporter.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { watchMountedFiles } from './mounted-files.ts';
import { createReload, type ReloadResult } from './reload.ts';
import { createScheduler } from '../schedule/scheduler.ts';
import { version } from './version.ts';
import { openWebProtection } from './web-protection.ts';
import { createEventFeed } from '../web/events/feed.ts';
import { watchMonitor } from '../web/page/monitor-state.ts';
import { startWebServer } from '../web/server.ts';

/** Time that requests in flight have when the daemon stops; Docker kills after 10 s (docs/specification.md#stopping). */
const GRACE_MS = 8000;
const MOUNTS_EVERY_MS = 60 * 1000;
const PRUNE_EVERY_MS = 60 * 60 * 1000;
/** How often a store is looked at for what other workers have committed, while somebody follows the events. */
const LOOK_EVERY_MS = 1000;

export interface Daemon {
  /** Of the HTTP interface. */
  readonly url: string;
  /** Loads the configuration again and applies it whole, or not at all (docs/specification.md#reload). */
  reload(): Promise<ReloadResult>;
  /** Stops in an orderly way (docs/specification.md#stopping); resolves when everything is closed. */
  stop(): Promise<void>;
}

export interface DaemonOptions {
  readonly config: Config;
  /** Reads it anew for a reload. @throws {ConfigError} */
  readonly loadConfig: () => Promise<Config>;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly revision: string;
  /** Aborted when the start is given up: it then rejects with the signal's reason, once it comes to its next step. */
  readonly signal?: AbortSignal;
  /** Told of everything that happens, after log and metrics. */
  readonly observers?: readonly Observer[];
}

/**
 * Opens, wires and starts the daemon; what was opened is released if something else cannot be.
 * @throws {ConfigError} when the web configuration cannot be used
 * @throws {StoreError} when the store cannot be opened or another process holds it
 * @throws {Error} with a system `code` when the web address cannot be listened on
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, loadConfig, logger, secrets, clock, revision, signal, observers = [] } = options;
  let isReloaded = true;
  const { configFile: file } = config.web;
  const onResult = (ok: boolean) => metrics.reloaded(ok && isReloaded);
  const protection = file ? await openWebProtection({ file, clock, logger, onResult }) : undefined;
  await using opened = new AsyncDisposableStack();
  const engine = await openEngine({
    config,
    logger,
    secrets,
    clock,
    onOwnership: () => schedule(),
  });
  opened.defer(() => engine.close());
  signal?.throwIfAborted();
  const { store, storeInfo, sharing, reporter, shutdown, emit } = engine;

  const scheduler = createScheduler({
    clock,
    emit,
    mayRun: (id) => engine.mayPoll(id),
    run: async (id, run) => {
      await engine.poll(id, run);
    },
    onError: endProcess,
  });
  let { jitterMs } = config;
  const schedule = () => {
    const projects = engine.projects().map(({ health, ...project }) => ({
      ...project,
      lastPollAt: health.lastPollAt,
      rests: !engine.mayPoll(project.id),
    }));
    scheduler.set(projects, jitterMs);
  };
  const metrics = createMetrics({
    version,
    revision,
    storeInfo,
    ...(sharing && { worker: () => sharing.worker.reading() }),
    clock,
    store,
    schedule: () => scheduler.projects(),
    emit,
    onError: endProcess,
  });
  const feed = createEventFeed(store, clock, sharing && { lookEveryMs: LOOK_EVERY_MS });
  logger.onLine((level) => metrics.countLogLine(level));
  const monitor = watchMonitor(clock);
  for (const observer of [
    metrics.observe,
    feed.observe,
    monitor.observe,
    wakeOnFailure(reporter),
    ...observers,
  ]) {
    engine.observe(observer);
  }
  await engine.configure(config);
  signal?.throwIfAborted();
  metrics.setProjects(engine.projects());
  const mounted = watchMountedFiles({ logger });
  const filesOf = (current: Config) => [
    ...new Set([...current.files, ...(protection?.files() ?? [])]),
  ];
  const reload = createReload({
    config,
    loadConfig: async () => {
      const next = await loadConfig();
      const replaced = await mounted.look(filesOf(next));
      if (replaced.includes(next.file)) throw replacedError(next.file);
      await protection?.reload();
      return next;
    },
    logger,
    apply: async (next) => {
      await engine.configure(next);
      metrics.setProjects(engine.projects());
      ({ jitterMs } = next);
      schedule();
    },
    onResult: (result) => {
      isReloaded = result.ok;
      metrics.reloaded(result.ok);
      monitor.reloaded(result);
    },
    onError: endProcess,
  });

  let ready = false;
  const isScheduling = () => ready && (sharing === undefined || sharing.worker.isConnected());
  const isReady = () => isScheduling() && engine.isStoreInPlace();
  const web = await startWebServer(
    {
      renderMetrics: () => metrics.render(),
      metricsContentType: metrics.contentType,
      isReady,
      onBug: createRequestFailureLog(logger),
      api: {
        store,
        feed,
        clock,
        health: (project) => engine.health(project),
        nextPollAt: (project) => scheduler.next(project),
      },
      page: {
        version,
        clock,
        store,
        retentionMs: config.store.retentionMs,
        isReady: isScheduling,
        projects: () =>
          engine.projects().map(({ id, datasets, health }) => {
            return { id, datasets, health, nextPollAt: scheduler.next(id) };
          }),
        monitor: () => monitor.state(),
      },
      mayReload: () => reload.config().web.enableLifecycle,
      reload: () => reload.run(),
    },
    { ...config.web, allowedHosts: () => reload.config().web.allowedHosts },
    protection,
  );
  opened.defer(() => web.close());
  signal?.throwIfAborted();

  const prune = () => {
    store.prune(clock.now() - config.store.retentionMs).catch((error: unknown) => {
      // The store has told of it already, and the next hour comes.
      if (!(error instanceof StoreError)) endProcess(error);
    });
  };
  await sharing?.worker.start();
  schedule();
  const { pid } = process;
  logger.info(
    { event: 'daemon.started', version, pid, url: web.url, projects: config.projects.length },
    'Daemon started',
  );
  reporter.start();
  scheduler.start();
  void mounted.look(filesOf(config));
  const looking = setInterval(() => {
    if (mounted.hasAny()) void mounted.look(filesOf(reload.config()));
  }, MOUNTS_EVERY_MS);
  const pruning = setInterval(prune, PRUNE_EVERY_MS);
  prune();
  ready = true;

  const closing = opened.move();
  return {
    url: web.url,
    reload: () => reload.run(),
    stop: async () => {
      ready = false;
      clearInterval(looking);
      clearInterval(pruning);
      scheduler.stop();
      shutdown.begin(GRACE_MS);
      const reported = reporter.stop();
      // Failures are claimed under the worker's lease: it ends after them.
      await Promise.all([scheduler.idle(), reported, sharing?.worker.stop(reported)]);
      await closing.disposeAsync();
      logger.info({ event: 'daemon.stopped' }, 'Daemon stopped');
    },
  };
}

/** A reload would load the old file again, and log success for an edit that it did not read. */
function replacedError(file: string): ConfigError {
  const message =
    'this file is mounted by itself and was replaced outside, so the old one is all that can be read here: ' +
    'restart evalwatch, or mount the directory of the file instead';
  return new ConfigError('unreadable', [{ file, line: 1, column: 1, message }]);
}

function wakeOnFailure(reporter: FailureReporter): Observer {
  return (event) => {
    if (event.type !== 'record.transition') return;
    const { kind, to } = event.transition;
    if (kind === 'prompt' && to === 'FAILED') reporter.wake();
  };
}

import type { Config, ProjectConfig } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import { createRequestFailureLog } from '../log/lines.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { unlessStoreFails } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import { NEVER_POLLED } from '../monitor/memory.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { EventFeed } from '../web/events/feed.ts';
import type { MonitorState, ReloadResult, ShownProject } from '../web/content.ts';
import type { ChangingProtection } from '../web/security.ts';
import { startWebServer, type WebServer } from '../web/server.ts';
import type { Engine } from './engine.ts';
import { createPollNow } from './poll-now.ts';
import type { Reload } from './reload.ts';
import type { Scheduling } from './scheduling.ts';
import { version } from './process.ts';

/** How long the first scrapes wait for the limits of the projects, ms. */
const MAX_LEARNING_MS = 5000;

export interface WebOptions {
  /** Address and retention, which a reload cannot change. */
  readonly config: Config;
  readonly engine: Engine;
  readonly scheduling: Scheduling;
  readonly metrics: Metrics;
  readonly feed: EventFeed;
  readonly monitor: MonitorWatch;
  readonly reload: Reload;
  readonly protection: ChangingProtection | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Whether the scheduler is running and, with several workers, this one is connected. */
  readonly isScheduling: () => boolean;
}

/**
 * Starts the web server: metrics, API, status page, reload and polls on request.
 * @throws {Error} with a system `code` if the server cannot listen on the address
 */
export async function startWeb(options: WebOptions): Promise<WebServer> {
  const { config, engine, scheduling, metrics, feed, monitor, reload, isScheduling } = options;
  const { clock } = options;
  // An alert that fires would resolve if a scrape after a restart lacked the limit (docs/specification.md#scrapes).
  const late = Promise.withResolvers<void>();
  clock.timeout(MAX_LEARNING_MS, late.resolve).unref();
  const learned = Promise.race([
    unlessStoreFails(() => engine.expectations.refresh()),
    late.promise,
  ]);
  const shown = ({ id, datasets, team, expect }: ProjectConfig): ShownProject => ({
    id,
    datasets,
    team,
    expect,
    health: engine.health(id) ?? NEVER_POLLED,
    isHealthKnown: engine.health(id) !== undefined,
    expectations: engine.expectations.of(id),
    nextPollAt: scheduling.next(id),
  });
  return await startWebServer(
    {
      version,
      clock,
      store: engine.store,
      snapshot: (project) => engine.snapshot(project),
      retentionMs: config.store.retentionMs,
      feed,
      renderMetrics: async () => {
        await learned;
        return await metrics.render();
      },
      metricsContentType: metrics.contentType,
      isScheduling,
      isReady: () => isScheduling() && engine.opened.isInPlace(),
      isLifecycleEnabled: () => engine.config().web.enableLifecycle,
      promptUrl: () => engine.config().promptUrl,
      projects: () => Array.from(engine.projects().values(), shown),
      project: (id) => {
        const project = engine.projects().get(id);
        return project && shown(project);
      },
      monitor: () => monitor.state(),
      reload: () => reload.run(),
      pollNow: createPollNow(engine, scheduling, clock),
      onBug: createRequestFailureLog(options.logger),
    },
    { ...config.web, allowedHosts: () => engine.config().web.allowedHosts },
    options.protection,
  );
}

/** The newest writes, reloads and lost runs of the monitor. */
export class MonitorWatch {
  readonly #clock: Clock;
  #state: MonitorState;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#state = {
      startedAt: clock.now(),
      lastCommitAt: undefined,
      lastCommitFailure: undefined,
      lastReload: undefined,
      missedRuns: 0,
      skippedRuns: 0,
      lastLostRunAt: undefined,
    };
  }

  readonly observe: Observer = (event) => {
    const at = this.#clock.now();
    const { missedRuns, skippedRuns } = this.#state;
    if (event.type === 'store.committed') {
      this.#set({ lastCommitAt: at });
    } else if (event.type === 'store.commit_failed') {
      this.#set({ lastCommitFailure: { at, reason: event.reason } });
    } else if (event.type === 'scheduler.missed') {
      this.#set({ missedRuns: missedRuns + event.count, lastLostRunAt: at });
    } else if (event.type === 'scheduler.overlapped') {
      this.#set({ skippedRuns: skippedRuns + 1, lastLostRunAt: at });
    }
  };

  /** Records an attempt to reload the configuration. */
  reloaded({ ok, reasons }: ReloadResult): void {
    this.#set({ lastReload: { at: this.#clock.now(), ok, reasons } });
  }

  state(): MonitorState {
    return this.#state;
  }

  #set(change: Partial<MonitorState>): void {
    this.#state = { ...this.#state, ...change };
  }
}

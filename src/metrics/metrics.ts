import { setImmediate } from 'node:timers/promises';
import { Registry } from 'prom-client';
import type { Observer } from '../monitor/events.ts';
import type { ExpectationsOf } from '../monitor/ports/expectations.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { LogLevel } from '../domain/log-level.ts';
import type { Store, StoreSnapshot } from '../monitor/ports/store.ts';
import type { ProjectSchedule, WatchedProject } from '../monitor/ports/watched-project.ts';
import { createExpectationRenderers } from './expectation-series.ts';
import { renderGauge, renderLabels, toSeconds, type RenderProjects } from './exposition.ts';
import {
  createMeasuredProjects,
  type MeasuredWorker,
  type ProjectsChange,
} from './measured-projects.ts';
import { createMetricsObserver } from './observer.ts';
import { createProcessMetrics, type BuildInfo } from './process-metrics.ts';
import { createCountRenderers } from './project-series.ts';
import { createScheduleRenderer } from './schedule-series.ts';
import { createScrapeRead } from './scrape-read.ts';
import type { ScrapedProject } from './scraped-project.ts';
import { createStoreRenderers, renderBacklog } from './stored-series.ts';

export interface MetricsOptions extends BuildInfo {
  readonly clock: Clock;
  readonly store: Pick<Store, 'size'> & { snapshot(): Promise<ScrapedStore> };
  /** Returns the schedule of a project; undefined while it has none. */
  readonly schedule: (project: string) => ProjectSchedule | undefined;
  readonly expectationsOf: ExpectationsOf;
  /** Returns the address at which users reach the web server (`web.external_url`). */
  readonly externalUrl: () => string | undefined;
  /** Absent if the store allows only one process. */
  readonly worker?: MeasuredWorker;
  /** Receives `store.commit_failed` when scrapes cannot read the store (docs/specification.md#scrapes). */
  readonly emit: Observer;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

/** What a scrape reads from the store. */
interface ScrapedStore extends StoreSnapshot {
  /** Number of projects that all workers watch; absent if the store allows only one process. */
  readonly configured?: number;
}

/**
 * All metrics of docs/metrics.md as text format 0.0.4. Those of a project are declared in project-series.ts (counted here),
 * stored-series.ts (read from the store) and schedule-series.ts; those of the process in process-metrics.ts.
 */
export interface Metrics {
  readonly observe: Observer;
  /**
   * Sets the configured projects. Those that have series stay as they are; a new one starts at 0 with its health. A worker
   * has series only of those that it owns.
   */
  setProjects(projects: readonly WatchedProject[]): void;
  /**
   * Starts the series of projects that this worker takes at 0, and ends those of projects that it no longer owns
   * (docs/specification.md#metrics-of-several-workers).
   */
  changeOwnership(change: ProjectsChange): void;
  countLogLine(level: LogLevel): void;
  /** Records an attempt to reload the configuration. */
  reloaded(ok: boolean): void;
  /**
   * Renders the exposition in pieces, with pauses for other work. Reads everything before the first piece. If the store
   * fails or is slow, only the series that need no store are rendered.
   */
  render(): AsyncIterable<Uint8Array>;
  readonly contentType: string;
}

/** Creates the metrics of one daemon on a registry of their own. */
export function createMetrics(options: MetricsOptions): Metrics {
  const { clock, store, schedule, expectationsOf, externalUrl, worker, emit, onError } = options;
  const registry = new Registry();
  const metrics = createProcessMetrics(registry, options, {
    startedAt: clock.now(),
    isWorker: worker !== undefined,
  });
  const projects = createMeasuredProjects(worker);
  /** Number of projects that all workers watch, as last read. */
  let configuredInStore: number | undefined;
  const renderers = createProjectRenderers();
  const reader = <Value>(read: () => Promise<Value>) =>
    createScrapeRead({
      read,
      clock,
      onFailure: (error) => emit({ type: 'store.commit_failed', reason: error.reason, error }),
    });
  const readSnapshot = reader(() => store.snapshot());
  const readSize = reader(() => store.size());

  /** Reads everything before the first piece of text. */
  async function* renderAll(): AsyncGenerator<Uint8Array> {
    const [snapshot, size] = await Promise.all([readSnapshot(), readSize()]);
    // prom-client writes a spelling that some parsers reject.
    const processText = (await registry.metrics()).replaceAll(/ Nan$/gm, ' NaN');
    configuredInStore = snapshot?.configured ?? configuredInStore;
    const scraped = await readProjects(snapshot);
    const singles =
      (snapshot === undefined ? '' : renderBacklog(snapshot.backlog)) +
      renderGauge(
        'evalwatch_store_database_bytes',
        'Size of the database file, or of all tables of a PostgreSQL store, in bytes.',
        size?.database,
      ) +
      renderGauge('evalwatch_store_wal_bytes', 'Size of the write-ahead log in bytes.', size?.wal) +
      renderWebInfo(externalUrl()) +
      renderGauge(
        'evalwatch_projects_configured',
        'Projects in the configuration that was applied last, by any worker.',
        configuredInStore ?? projects.configured(),
      ) +
      (worker === undefined ? '' : renderWorker(scraped.length, worker.leaseExpiresAt())) +
      processText;
    let bytes = 0;
    for (const render of renderers) {
      for (const piece of render(scraped)) {
        yield piece;
        bytes += piece.length;
        if (bytes < BYTES_PER_STEP) continue;
        await setImmediate();
        bytes = 0;
      }
    }
    yield Buffer.from(singles);
  }

  /** Reads each project at one moment, and lets other work run between projects. */
  async function readProjects(snapshot: StoreSnapshot | undefined): Promise<ScrapedProject[]> {
    const stored = new Map(snapshot?.projects.map((project) => [project.project, project]));
    const scraped: ScrapedProject[] = [];
    for (const series of projects.shown(snapshot)) {
      if (scraped.length % PROJECTS_PER_STEP === PROJECTS_PER_STEP - 1) await setImmediate();
      scraped.push({
        counts: series.counts(),
        health: series.health,
        schedule: schedule(series.id),
        expectations: expectationsOf(series.id),
        stored: stored.get(series.id),
      });
    }
    return scraped;
  }

  return {
    observe: createMetricsObserver(metrics, projects.series),
    setProjects: (measured) => projects.set(measured),
    changeOwnership: (change) => projects.change(change),
    countLogLine(level) {
      metrics.logMessages.inc({ level });
    },
    reloaded(ok) {
      metrics.configReloadSuccessful.set(ok ? 1 : 0);
      if (ok) metrics.configReloadSuccessTime.set(clock.now() / 1000);
    },
    async *render() {
      try {
        yield* renderAll();
      } catch (error) {
        onError(error);
        throw error;
      }
    },
    contentType: registry.contentType,
  };
}

function renderWebInfo(externalUrl: string | undefined): string {
  return renderGauge(
    'evalwatch_web_info',
    'Always 1; the label shows the address at which users reach the web server.',
    externalUrl === undefined ? undefined : 1,
    renderLabels({ external_url: externalUrl ?? '' }),
  );
}

function renderWorker(projects: number, leaseExpiresAt: number | undefined): string {
  return (
    renderGauge(
      'evalwatch_worker_projects',
      'Projects that this worker owns, which are those whose series it exports.',
      projects,
    ) +
    renderGauge(
      'evalwatch_worker_lease_expiry_timestamp_seconds',
      'When the lease of this worker runs out unless it is renewed, Unix time in seconds.',
      toSeconds(leaseExpiresAt),
    )
  );
}

/** Creates the renderers of the series of each project, in the order of the exposition. */
function createProjectRenderers(): readonly RenderProjects<ScrapedProject>[] {
  return [
    ...createCountRenderers(),
    createScheduleRenderer(),
    ...createExpectationRenderers(),
    ...createStoreRenderers(),
  ];
}

/** Bytes rendered in one step. While listings are read, a turn of the event loop can take 20 ms: few projects need one. */
const BYTES_PER_STEP = 256 * 1024;

/** Number of projects read in one step, which takes about a millisecond. */
const PROJECTS_PER_STEP = 500;

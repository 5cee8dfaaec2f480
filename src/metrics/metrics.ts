import { setImmediate } from 'node:timers/promises';
import { Registry } from 'prom-client';
import type { Observer } from '../monitor/events.ts';
import type { ExpectationsOf } from '../monitor/ports/expectations.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { LogLevel } from '../domain/log-level.ts';
import type { PollHealth, ProjectSnapshot, Store, StoreSnapshot } from '../monitor/ports/store.ts';
import type { ProjectSchedule, WatchedProject } from '../monitor/ports/watched-project.ts';
import type { WorkerReading } from '../monitor/ports/worker.ts';
import { createExpectationRenderers } from './expectation-series.ts';
import { renderGauge, renderLabels, toSeconds, type RenderProjects } from './exposition.ts';
import { createMetricsObserver } from './observer.ts';
import { createProcessMetrics, type BuildInfo } from './process-metrics.ts';
import { createCountRenderers, ProjectSeries } from './project-series.ts';
import { createScheduleRenderer } from './schedule-series.ts';
import { createScrapeRead } from './scrape-read.ts';
import type { ScrapedProject } from './scraped-project.ts';
import { createStoreRenderers, renderBacklog } from './stored-series.ts';

export interface MetricsOptions extends BuildInfo {
  readonly clock: Clock;
  readonly store: Pick<Store, 'snapshot' | 'size'>;
  /** Every configured project. */
  readonly schedule: () => Iterable<ProjectSchedule>;
  readonly expectationsOf: ExpectationsOf;
  /** Returns the address at which users reach the web server (`web.external_url`). */
  readonly externalUrl: () => string | undefined;
  /** Returns the figures of this worker; absent if the store allows only one process. */
  readonly worker?: () => WorkerReading;
  /** Receives `store.commit_failed` when scrapes cannot read the store (docs/specification.md#scrapes). */
  readonly emit: Observer;
  /** Receives unexpected errors: bugs. */
  readonly onError: (error: unknown) => void;
}

/**
 * All metrics of docs/metrics.md as text format 0.0.4. Those of a project are declared in project-series.ts (counted here),
 * stored-series.ts (read from the store) and schedule-series.ts; those of the process in process-metrics.ts.
 */
export interface Metrics {
  readonly observe: Observer;
  /** Sets the projects that have series: a new one starts at 0 with its health, one that stays keeps its counts. */
  setProjects(projects: readonly WatchedProject[]): void;
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
  const projects = new Map<string, ProjectSeries>();
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
      (worker === undefined ? '' : renderWorker(worker())) +
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

  /**
   * Returns the poll health of a project. With several workers, the newer of two values: memory (correct even while the store
   * cannot be written) and the store (includes polls of other workers). Undefined if another worker polls the project and the
   * store could not be read.
   */
  function healthOf(
    series: ProjectSeries,
    stored: ProjectSnapshot | undefined,
    item: ProjectSchedule | undefined,
  ): PollHealth | undefined {
    if (worker === undefined) return series.health;
    if (stored === undefined) return item?.nextPollAt === undefined ? undefined : series.health;
    const isNewer = (series.health.lastPollAt ?? 0) > (stored.health.lastPollAt ?? 0);
    return isNewer ? series.health : stored.health;
  }

  /** Reads each project at one moment, and lets other work run between projects. */
  async function readProjects(snapshot: StoreSnapshot | undefined): Promise<ScrapedProject[]> {
    const stored = new Map(snapshot?.projects.map((project) => [project.project, project]));
    const scheduled = new Map(Array.from(schedule(), (item) => [item.project, item]));
    const scraped: ScrapedProject[] = [];
    for (const series of Array.from(projects.values())) {
      if (scraped.length % PROJECTS_PER_STEP === PROJECTS_PER_STEP - 1) await setImmediate();
      const item = scheduled.get(series.id);
      const project = stored.get(series.id);
      scraped.push({
        counts: series.counts(),
        health: healthOf(series, project, item),
        schedule: item,
        expectations: expectationsOf(series.id),
        stored: project,
      });
    }
    return scraped;
  }

  return {
    observe: createMetricsObserver(metrics, projects),
    setProjects(measured) {
      const before = new Map(projects);
      projects.clear();
      for (const project of measured) {
        const series = before.get(project.id) ?? new ProjectSeries(project);
        series.configure(project);
        projects.set(project.id, series);
      }
    },
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

function renderWorker({ projects, leaseExpiresAt }: WorkerReading): string {
  return (
    renderGauge(
      'evalwatch_worker_projects',
      'Projects that this worker owns and polls.',
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

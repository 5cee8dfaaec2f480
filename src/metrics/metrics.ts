import { Registry } from 'prom-client';
import { StoreError } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock, LogLevel, PollHealth, Store } from '../monitor/ports.ts';
import {
  SINGLE,
  renderFamilies,
  renderGauge,
  toSeconds,
  type Family,
  type Labelled,
} from './exposition.ts';
import { createMetricsObserver } from './observer.ts';
import { createProcessMetrics, type BuildInfo } from './process-metrics.ts';
import { PROJECT_FAMILIES, ProjectSeries } from './project-series.ts';
import { renderStore } from './store-collector.ts';

/** When a project is polled, as its schedule has it at the moment. */
interface ScheduledProject {
  readonly project: string;
  /** Epoch ms; undefined while nothing is due. */
  readonly nextPollAt: number | undefined;
  readonly maxIntervalSeconds: number;
}

export interface MetricsOptions extends BuildInfo {
  readonly clock: Clock;
  readonly store: Pick<Store, 'snapshot' | 'size'>;
  readonly schedule: () => Iterable<ScheduledProject>;
  /** Is told `store.commit_failed` when the store cannot be read for a scrape (contract 3). */
  readonly emit: Observer;
}

interface MeasuredProject {
  readonly id: string;
  /** Its datasets are watched too. */
  readonly datasets: boolean;
  /** As the store has it; used only for a project that is new here. */
  readonly health: PollHealth;
}

/** Everything of metrics.md: fed with events, rendered as text 0.0.4. */
export interface Metrics {
  readonly observe: Observer;
  /** Makes these the projects that have series: new ones start at 0, those that stay count on, others vanish. */
  setProjects(projects: readonly MeasuredProject[]): void;
  countLogLine(level: LogLevel): void;
  /** After each attempt to reload the configuration. */
  reloaded(ok: boolean): void;
  /** Never rejects for the store's sake: without it the series that need none are rendered. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** Creates the metrics of one daemon on a registry of their own. */
export function createMetrics(options: MetricsOptions): Metrics {
  const { clock, store, schedule, emit } = options;
  const registry = new Registry();
  const metrics = createProcessMetrics(registry, options, clock.now());
  const projects = new Map<string, ProjectSeries>();

  async function read<Value>(query: () => Promise<Value>): Promise<Value | undefined> {
    try {
      return await query();
    } catch (error) {
      emit({
        type: 'store.commit_failed',
        reason: error instanceof StoreError ? error.reason : 'other',
        error: error instanceof Error ? error : new Error(String(error)),
      });
      return undefined;
    }
  }

  async function renderAll(): Promise<string> {
    const [snapshot, size] = await Promise.all([
      read(() => store.snapshot()),
      read(() => store.size()),
    ]);
    // prom-client's own spelling is one that only some readers take.
    const processText = (await registry.metrics()).replaceAll(/ Nan$/gm, ' NaN');
    const subjects = [...projects.values()].map((series): Labelled<ProjectSeries> => [
      series.labels,
      series,
    ]);
    return (
      renderFamilies(PROJECT_FAMILIES, subjects) +
      renderSchedule(schedule(), projects) +
      (snapshot === undefined ? '' : renderStore(snapshot, projects)) +
      renderGauge(
        'evalwatch_store_database_bytes',
        'Size of the database file in bytes.',
        size?.database,
      ) +
      renderGauge('evalwatch_store_wal_bytes', 'Size of the write-ahead log in bytes.', size?.wal) +
      processText
    );
  }

  let rendering: Promise<string> | undefined;

  return {
    observe: createMetricsObserver(metrics, projects),
    setProjects(measured) {
      const before = new Map(projects);
      projects.clear();
      for (const { id, datasets, health } of measured) {
        const series = before.get(id) ?? new ProjectSeries(id, datasets, health);
        series.datasets = datasets;
        projects.set(id, series);
      }
    },
    countLogLine(level) {
      metrics.logMessages.inc({ level });
    },
    reloaded(ok) {
      metrics.configReloadSuccessful.set(ok ? 1 : 0);
      if (ok) metrics.configReloadSuccessTime.set(clock.now() / 1000);
    },
    render() {
      rendering ??= renderAll().finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
    contentType: registry.contentType,
  };
}

const SCHEDULE_FAMILIES: readonly Family<ScheduledProject>[] = [
  {
    name: 'evalwatch_project_schedule_max_interval_seconds',
    type: 'gauge',
    help: 'Longest gap between two scheduled polls of the project in the years to come, in seconds.',
    samples: SINGLE,
    values: ({ maxIntervalSeconds }) => [maxIntervalSeconds],
  },
  {
    name: 'evalwatch_project_next_poll_timestamp_seconds',
    type: 'gauge',
    help: 'When the next poll of the project is due, Unix time in seconds; past if it has not started.',
    samples: SINGLE,
    values: ({ nextPollAt }) => [toSeconds(nextPollAt)],
  },
];

function renderSchedule(
  scheduled: Iterable<ScheduledProject>,
  projects: ReadonlyMap<string, ProjectSeries>,
): string {
  const subjects: Labelled<ScheduledProject>[] = [];
  for (const item of scheduled) {
    const series = projects.get(item.project);
    if (series !== undefined) subjects.push([series.labels, item]);
  }
  return renderFamilies(SCHEDULE_FAMILIES, subjects);
}

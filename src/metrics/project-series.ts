import { ANOMALY_REASONS, type AnomalyReason } from '../domain/record.ts';
import { UNFINISHED_STATUSES, type UnfinishedStatus } from '../domain/status.ts';
import { POLL_FAILURE_REASONS } from '../monitor/errors.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { PollHealth } from '../monitor/ports/store.ts';
import type { WatchedProject } from '../monitor/ports/watched-project.ts';
import {
  SINGLE,
  familyRenderer,
  renderLabels,
  type Family,
  type RenderProjects,
} from './exposition.ts';
import { Histogram, histogramSamples } from './histogram.ts';
import type { ProjectCounts, ScrapedProject } from './scraped-project.ts';

const STATE_DURATION_BOUNDS = [60, 300, 900, 3600, 14_400, 86_400];

/** The counts of this process for one configured project, from 0. */
export class ProjectSeries implements ProjectCounts {
  readonly id: string;
  readonly labels: string;
  infoLabels = '';
  datasets = false;
  expect: WatchedProject['expect'];
  health: PollHealth;
  polls = 0;
  unchanged = 0;
  overlapped = 0;
  missed = 0;
  failures: readonly number[] = POLL_FAILURE_REASONS.map(() => 0);
  anomalies: readonly number[] = ANOMALY_REASONS.map(() => 0);
  readonly #stateDurations: Readonly<Record<UnfinishedStatus, Histogram>> = {
    PENDING: new Histogram(STATE_DURATION_BOUNDS),
    RUNNING: new Histogram(STATE_DURATION_BOUNDS),
  };
  durations: readonly number[] = this.#durationValues();

  constructor(project: WatchedProject) {
    this.id = project.id;
    this.labels = renderLabels({ project: project.id });
    this.health = project.health;
    this.expect = project.expect;
    this.configure(project);
  }

  /** Sets what a reload can change. */
  configure({ datasets, expect, team }: Omit<WatchedProject, 'health'>): void {
    this.datasets = datasets;
    this.expect = expect;
    this.infoLabels = renderLabels({ project: this.id, team });
  }

  /** Returns the counts of this moment. */
  counts(): ProjectCounts {
    const { labels, infoLabels, datasets, expect } = this;
    const { polls, unchanged, overlapped, missed, failures, anomalies, durations } = this;
    return {
      labels,
      infoLabels,
      datasets,
      expect,
      polls,
      unchanged,
      overlapped,
      missed,
      failures,
      anomalies,
      durations,
    };
  }

  pollFinished(event: Extract<MonitorEvent, { type: 'poll.finished' }>): void {
    this.polls += 1;
    this.health = event.health;
    if (event.failure === undefined) {
      if (event.unchanged) this.unchanged += 1;
    } else {
      const index = POLL_FAILURE_REASONS.indexOf(event.failure.reason);
      this.failures = withAdded(this.failures, index, 1);
    }
  }

  countAnomalies(reason: AnomalyReason, count: number): void {
    this.anomalies = withAdded(this.anomalies, ANOMALY_REASONS.indexOf(reason), count);
  }

  observeStateDuration(status: UnfinishedStatus, heldMs: number): void {
    this.#stateDurations[status].observe(heldMs);
    this.durations = this.#durationValues();
  }

  #durationValues(): readonly number[] {
    return UNFINISHED_STATUSES.flatMap((status) => this.#stateDurations[status].values());
  }

  countOverlap(): void {
    this.overlapped += 1;
  }

  countMissed(count: number): void {
    this.missed += count;
  }
}

/** Metrics of poll health, which need no store. */
const HEALTH_FAMILIES: readonly Family<PollHealth>[] = [
  {
    name: 'evalwatch_project_up',
    type: 'gauge',
    help: 'Whether the last finished poll of the project succeeded and was committed, 1 or 0.',
    samples: SINGLE,
    values: ({ up }) => [up ? 1 : 0],
  },
  {
    name: 'evalwatch_project_consecutive_poll_failures',
    type: 'gauge',
    help: 'Failed polls of the project since its last successful one.',
    samples: SINGLE,
    values: ({ consecutiveFailures }) => [consecutiveFailures],
  },
  {
    name: 'evalwatch_project_poll_failing',
    type: 'gauge',
    help: 'Always 1; the label is why the last finished poll of the project failed.',
    samples: POLL_FAILURE_REASONS.map((reason) => ({ labels: { reason } })),
    values: ({ reason }) => POLL_FAILURE_REASONS.map((each) => (each === reason ? 1 : undefined)),
  },
];

/** Metrics that this process counts for each project (docs/metrics.md, "process"). */
const COUNTED_FAMILIES: readonly Family<ProjectCounts>[] = [
  {
    name: 'evalwatch_polls_total',
    type: 'counter',
    help: 'Finished polls, successful or not.',
    samples: SINGLE,
    values: ({ polls }) => [polls],
  },
  {
    name: 'evalwatch_poll_failures_total',
    type: 'counter',
    help: 'Failed polls by reason.',
    samples: POLL_FAILURE_REASONS.map((reason) => ({ labels: { reason } })),
    values: ({ failures }) => failures,
  },
  {
    name: 'evalwatch_polls_unchanged_total',
    type: 'counter',
    help: 'Successful polls whose listings were all the same as the previous ones (304, or equal content).',
    samples: SINGLE,
    values: ({ unchanged }) => [unchanged],
  },
  {
    name: 'evalwatch_prompt_state_duration_seconds',
    type: 'histogram',
    help: 'Seconds that prompts spent in PENDING or RUNNING, observed when they leave it.',
    samples: UNFINISHED_STATUSES.flatMap((status) =>
      histogramSamples(STATE_DURATION_BOUNDS, { status }),
    ),
    values: ({ durations }) => durations,
  },
  {
    name: 'evalwatch_item_anomalies_total',
    type: 'counter',
    help: 'Items of listings that are not as documented, by reason, counted in every listing.',
    samples: ANOMALY_REASONS.map((reason) => ({ labels: { reason } })),
    values: ({ anomalies }) => anomalies,
  },
  {
    name: 'evalwatch_scheduler_overlapped_runs_total',
    type: 'counter',
    help: 'Scheduled polls skipped because the previous one was still running.',
    samples: SINGLE,
    values: ({ overlapped }) => [overlapped],
  },
  {
    name: 'evalwatch_scheduler_missed_runs_total',
    type: 'counter',
    help: 'Scheduled polls that never started: clock jump, blocked loop, suspended process.',
    samples: SINGLE,
    values: ({ missed }) => [missed],
  },
];

/** Creates the renderers of what this process counts and of poll health, which need no store. */
export function createCountRenderers(): readonly RenderProjects<ScrapedProject>[] {
  return [
    familyRenderer(HEALTH_FAMILIES, ({ counts, health }, add) => add(counts.labels, health)),
    familyRenderer(COUNTED_FAMILIES, ({ counts }, add) => add(counts.labels, counts)),
  ];
}

function withAdded(counts: readonly number[], index: number, count: number): readonly number[] {
  return counts.with(index, (counts[index] ?? 0) + count);
}

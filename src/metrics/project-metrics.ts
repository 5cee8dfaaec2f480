import { createHash } from 'node:crypto';
import { isErrorId, SPECIAL_ERROR_LABELS, type ErrorTotal } from '../domain/failure.ts';
import { ANOMALY_REASONS, type AnomalyReason } from '../domain/record.ts';
import {
  PROMPT_STATUSES,
  UNFINISHED_STATUSES,
  isUnfinished,
  statusesOf,
  transitionPairs,
  type Kind,
} from '../domain/status.ts';
import { POLL_FAILURE_REASONS, type PollFailureReason } from '../monitor/errors.ts';
import type { MonitorEvent } from '../monitor/events.ts';
import type { StateExpectations } from '../domain/limits.ts';
import { visible } from '../domain/visible.ts';
import type {
  ExperimentRow,
  ListingSnapshot,
  PollHealth,
  ProjectSnapshot,
} from '../monitor/ports/store.ts';
import type { ConfiguredProject, ProjectSchedule } from '../monitor/ports/watched-project.ts';
import {
  DurationHistogram,
  bucketsOf,
  labelled,
  renderLabel,
  toSeconds,
  type Family,
} from './exposition.ts';

// Every metric of a project: what this process counts for it, and the families with name, help and labels.

const BOUNDS = [60, 300, 900, 3600, 14_400, 86_400];
const PENDING_BUCKETS = bucketsOf(BOUNDS, renderLabel('status', 'PENDING'));
const RUNNING_BUCKETS = bucketsOf(BOUNDS, renderLabel('status', 'RUNNING'));

const UNFINISHED = labelled('status', UNFINISHED_STATUSES);
const FAILURE_REASONS = labelled('reason', POLL_FAILURE_REASONS);
const ANOMALIES = labelled('reason', ANOMALY_REASONS);

/** What this process counts for one configured project, from 0. */
export class ProjectCounts {
  readonly id: string;
  /** The label `project`, rendered. */
  readonly labels: string;
  polls = 0;
  unchanged = 0;
  overlapped = 0;
  missed = 0;
  readonly failures = new Map<PollFailureReason, number>();
  readonly anomalies = new Map<AnomalyReason, number>();
  readonly durations = {
    PENDING: new DurationHistogram(PENDING_BUCKETS),
    RUNNING: new DurationHistogram(RUNNING_BUCKETS),
  };

  constructor(id: string) {
    this.id = id;
    this.labels = renderLabel('project', id);
  }

  /** Counts an event of this project. */
  observe(event: MonitorEvent): void {
    if (event.type === 'poll.finished') {
      const { failure, unchanged } = event;
      this.polls += 1;
      if (failure !== undefined) increase(this.failures, failure.reason, 1);
      else if (unchanged) this.unchanged += 1;
    } else if (event.type === 'record.transition') {
      const { kind, from, heldMs } = event.transition;
      if (kind === 'prompt' && isUnfinished(from) && heldMs !== undefined) {
        this.durations[from].observe(heldMs);
      }
    } else if (event.type === 'items.anomalous') {
      increase(this.anomalies, event.reason, event.count);
    } else if (event.type === 'scheduler.overlapped') {
      this.overlapped += 1;
    } else if (event.type === 'scheduler.missed') {
      this.missed += event.count;
    }
  }
}

function increase<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

/** What a scrape shows of a project. */
export interface ScrapedProject {
  readonly labels: string;
  readonly project: ConfiguredProject;
  /** From memory, to be correct while the store cannot be written. */
  readonly health: PollHealth;
  readonly counts: ProjectCounts;
  readonly schedule: ProjectSchedule | undefined;
  /** Whether no alert is to be about it. */
  readonly isQuiet: boolean;
  readonly expectations: StateExpectations | undefined;
  /** Absent if the store could not be read. */
  readonly stored: ProjectSnapshot | undefined;
  /** Those that it shows. */
  readonly experiments: readonly ExperimentRow[];
}

const PROMPTS: readonly Family<ListingSnapshot>[] = [
  ...familiesOf('prompt'),
  {
    name: 'evalwatch_prompts_missing',
    type: 'gauge',
    help: 'Prompts that were missing from the last complete listing and are not gone yet.',
    samples: ({ missing }, add) => add(missing),
  },
  {
    name: 'evalwatch_prompts_gone_total',
    type: 'counter',
    help: 'Prompts that are gone: missing from several complete listings in a row.',
    samples: ({ goneTotal }, add) => add(goneTotal),
  },
  {
    name: 'evalwatch_prompt_oldest_in_state_timestamp_seconds',
    type: 'gauge',
    help: 'When the prompt that has been PENDING or RUNNING for the longest time was first seen in that status, Unix time in seconds.',
    samples: ({ oldest }, add) => {
      for (const [status, label] of UNFINISHED) add(toSeconds(oldest.get(status)), label);
    },
  },
];

const FAILURES: readonly Family<ListingSnapshot>[] = [
  {
    name: 'evalwatch_prompt_failures_total',
    type: 'counter',
    help: 'Reported failures of prompts by error_id: the first 20 error_ids of the project, other, and none without one.',
    samples: ({ errors }, add) => {
      for (const { label, count } of withSpecialLabels(errors)) {
        add(count, renderLabel('error_id', label));
      }
    },
  },
  {
    name: 'evalwatch_prompt_error_first_seen_timestamp_seconds',
    type: 'gauge',
    help: 'When a failure of the project was first reported with the error_id, Unix time in seconds.',
    samples: ({ errors }, add) => {
      for (const { label, firstSeenAt } of errors) {
        if (isErrorId(label)) add(toSeconds(firstSeenAt), renderLabel('error_id', label));
      }
    },
  },
];

/** Adds the special labels that have no failures, at 0: a counter that begins with 1 shows no increase. */
function withSpecialLabels(totals: readonly ErrorTotal[]): readonly ErrorTotal[] {
  const unseen = SPECIAL_ERROR_LABELS.filter((special) =>
    totals.every(({ label }) => label !== special),
  );
  return [...totals, ...unseen.map((label) => ({ label, count: 0, firstSeenAt: 0 }))];
}

const PROMPT_LABELS = labelled('status', PROMPT_STATUSES);
/** Maximum length of the label of an experiment. */
const MAX_EXPERIMENT_LENGTH = 100;

/** Returns the name on one line without hidden characters; the beginning of a long one, with a digest that tells it apart. */
function experimentLabel(name: string): string {
  const characters = Array.from(visible(name));
  if (characters.length <= MAX_EXPERIMENT_LENGTH) return characters.join('');
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${characters.slice(0, MAX_EXPERIMENT_LENGTH - 9).join('')}~${digest}`;
}

/** Metrics that prompts and datasets have in common. */
function familiesOf(kind: Kind): readonly Family<ListingSnapshot>[] {
  const statuses = labelled('status', statusesOf(kind));
  const pairs = transitionPairs(kind).map(([from, to]) => {
    return { from, to, labels: `${renderLabel('from', from)},${renderLabel('to', to)}` };
  });
  return [
    {
      name: `evalwatch_${kind}s`,
      type: 'gauge',
      help: `Number of ${kind}s by last known status.`,
      samples: ({ counts }, add) => {
        for (const [status, label] of statuses) add(counts.get(status) ?? 0, label);
      },
    },
    {
      name: `evalwatch_${kind}_transitions_total`,
      type: 'counter',
      help: `Committed moves of ${kind}s from one status to another; from NEW when first seen.`,
      samples: ({ transitions }, add) => {
        for (const { from, to, labels } of pairs) {
          add(transitions.find((each) => each[0] === from && each[1] === to)?.[2] ?? 0, labels);
        }
      },
    },
    {
      name: `evalwatch_${kind}_last_failure_timestamp_seconds`,
      type: 'gauge',
      help: `When the newest move of a ${kind} to FAILED was committed, Unix time in seconds.`,
      samples: ({ lastFailureAt }, add) => add(toSeconds(lastFailureAt)),
    },
  ];
}

const NEVER_LISTED: ListingSnapshot = {
  counts: new Map(),
  missing: 0,
  goneTotal: 0,
  transitions: [],
  lastFailureAt: undefined,
  oldest: new Map(),
  isIdle: false,
  errors: [],
};

/** Makes families of a listing of a project. A project without it has no samples: the store could not be read. */
function ofListing(
  kind: Kind,
  families: readonly Family<ListingSnapshot>[],
): readonly Family<ScrapedProject>[] {
  return families.map((family) => ({
    ...family,
    samples: ({ project, stored }, add) => {
      if (stored === undefined || (kind === 'dataset' && !project.datasets)) return;
      family.samples(stored.listings.get(kind) ?? NEVER_LISTED, add);
    },
  }));
}

/** The metrics of each project, in the order of the exposition. */
export const PROJECT_FAMILIES: readonly Family<ScrapedProject>[] = [
  {
    name: 'evalwatch_project_up',
    type: 'gauge',
    help: 'Whether the last finished poll of the project succeeded and was committed, 1 or 0.',
    samples: ({ health }, add) => add(health.up ? 1 : 0),
  },
  {
    name: 'evalwatch_project_consecutive_poll_failures',
    type: 'gauge',
    help: 'Failed polls of the project since its last successful one.',
    samples: ({ health }, add) => add(health.consecutiveFailures),
  },
  {
    name: 'evalwatch_project_poll_failing',
    type: 'gauge',
    help: 'Always 1; the label is why the last finished poll of the project failed.',
    samples: ({ health: { reason } }, add) => {
      if (reason !== undefined) add(1, renderLabel('reason', reason));
    },
  },
  {
    name: 'evalwatch_polls_total',
    type: 'counter',
    help: 'Finished polls, successful or not.',
    samples: ({ counts }, add) => add(counts.polls),
  },
  {
    name: 'evalwatch_poll_failures_total',
    type: 'counter',
    help: 'Failed polls by reason.',
    samples: ({ counts }, add) => {
      for (const [reason, label] of FAILURE_REASONS) add(counts.failures.get(reason) ?? 0, label);
    },
  },
  {
    name: 'evalwatch_polls_unchanged_total',
    type: 'counter',
    help: 'Successful polls whose listings were all the same as the previous ones (304, or equal content).',
    samples: ({ counts }, add) => add(counts.unchanged),
  },
  {
    name: 'evalwatch_prompt_state_duration_seconds',
    type: 'histogram',
    help: 'Seconds that prompts spent in PENDING or RUNNING, observed when they leave it.',
    samples: ({ counts }, add) => {
      for (const status of UNFINISHED_STATUSES) counts.durations[status].samples(add);
    },
  },
  {
    name: 'evalwatch_item_anomalies_total',
    type: 'counter',
    help: 'Items of listings that are not as documented, by reason, counted in every listing.',
    samples: ({ counts }, add) => {
      for (const [reason, label] of ANOMALIES) add(counts.anomalies.get(reason) ?? 0, label);
    },
  },
  {
    name: 'evalwatch_scheduler_overlapped_runs_total',
    type: 'counter',
    help: 'Scheduled polls skipped because the previous one was still running.',
    samples: ({ counts }, add) => add(counts.overlapped),
  },
  {
    name: 'evalwatch_scheduler_missed_runs_total',
    type: 'counter',
    help: 'Scheduled polls that never started: clock jump, blocked loop, suspended process.',
    samples: ({ counts }, add) => add(counts.missed),
  },
  {
    name: 'evalwatch_project_schedule_max_interval_seconds',
    type: 'gauge',
    help: 'Longest gap between two scheduled polls of the project in the years to come, in seconds.',
    samples: ({ schedule }, add) => add(schedule?.maxIntervalSeconds),
  },
  {
    name: 'evalwatch_project_next_poll_timestamp_seconds',
    type: 'gauge',
    help: 'When the next poll of the project is due, Unix time in seconds; past if it has not started.',
    samples: ({ schedule }, add) => add(toSeconds(schedule?.nextPollAt)),
  },
  {
    name: 'evalwatch_project_paused',
    type: 'gauge',
    help: 'Always 1, while no alert is to fire for the project: it is paused, or in maintenance.',
    samples: ({ isQuiet }, add) => add(isQuiet ? 1 : undefined),
  },
  {
    name: 'evalwatch_prompt_state_limit_seconds',
    type: 'gauge',
    help: 'How long a prompt may stay in the status, in seconds; absent without a limit.',
    samples: ({ expectations }, add) => {
      for (const [status, label] of UNFINISHED)
        add(toSeconds(expectations?.[status].limitMs), label);
    },
  },
  {
    name: 'evalwatch_prompt_state_typical_seconds',
    type: 'gauge',
    help: 'Median time that prompts spent in the status over the last 30 days, in seconds.',
    samples: ({ expectations }, add) => {
      for (const [status, label] of UNFINISHED)
        add(toSeconds(expectations?.[status].typicalMs), label);
    },
  },
  {
    name: 'evalwatch_project_max_failure_ratio',
    type: 'gauge',
    help: 'Configured share of the finished prompts that may fail, 0 to 0.8; absent without an objective.',
    samples: ({ project }, add) => add(project.expect.maxFailureRatio),
  },
  {
    name: 'evalwatch_project_info',
    type: 'gauge',
    help: 'Always 1; the label team is the team of the project, empty without one.',
    samples: ({ project }, add) => add(1, renderLabel('team', project.team)),
  },
  {
    name: 'evalwatch_project_configured_timestamp_seconds',
    type: 'gauge',
    help: 'When the project was first configured, Unix time in seconds.',
    samples: ({ stored }, add) => add(toSeconds(stored?.configuredAt)),
  },
  {
    name: 'evalwatch_poll_last_success_timestamp_seconds',
    type: 'gauge',
    help: 'When the last successful poll of the project was committed, Unix time in seconds.',
    samples: ({ stored }, add) => add(toSeconds(stored?.health.lastSuccessAt)),
  },
  ...ofListing('prompt', PROMPTS),
  {
    name: 'evalwatch_experiment_prompts',
    type: 'gauge',
    help: 'Number of prompts by last known status, of the newest experiments that have not finished.',
    samples: ({ experiments }, add) => {
      // Names that are made for it can have the same label.
      const byLabel = Map.groupBy(experiments, ({ experiment }) => experimentLabel(experiment));
      for (const [label, same] of byLabel) {
        for (const [status, statusLabel] of PROMPT_LABELS) {
          const count = same.reduce((sum, { counts }) => sum + counts[status], 0);
          add(count, `${renderLabel('experiment', label)},${statusLabel}`);
        }
      }
    },
  },
  ...ofListing('dataset', familiesOf('dataset')),
  ...ofListing('prompt', FAILURES),
];

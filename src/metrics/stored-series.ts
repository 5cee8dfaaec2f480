import {
  UNFINISHED_STATUSES,
  statusesOf,
  transitionPairs,
  type Kind,
  type Origin,
  type Status,
} from '../domain/status.ts';
import { isErrorId, SPECIAL_ERROR_LABELS, type ErrorTotal } from '../domain/error-label.ts';
import type { ListingSnapshot, ProjectSnapshot, StoreSnapshot } from '../monitor/ports/store.ts';
import {
  SINGLE,
  familyRenderer,
  renderGauge,
  renderLabels,
  toSeconds,
  type Family,
  type RenderProjects,
} from './exposition.ts';
import type { ScrapedProject } from './scraped-project.ts';

/** Adds the special labels that have no failures, at 0: a counter that begins with 1 shows no increase. */
function withSpecialLabels(totals: readonly ErrorTotal[]): readonly ErrorTotal[] {
  const counted = new Set(totals.map(({ label }) => label));
  return [...totals, ...NO_FAILURES.filter(({ label }) => !counted.has(label))];
}

export function renderBacklog({ count, oldestAt }: StoreSnapshot['backlog']): string {
  return (
    renderGauge(
      'evalwatch_error_info_backlog',
      'Failures of prompts whose error_info is not logged yet.',
      count,
    ) +
    renderGauge(
      'evalwatch_error_info_backlog_oldest_timestamp_seconds',
      'When the oldest failure whose error_info is not logged yet was found, Unix time in seconds.',
      toSeconds(oldestAt),
    )
  );
}

const NO_FAILURES: readonly ErrorTotal[] = SPECIAL_ERROR_LABELS.map((label) => {
  return { label, count: 0, firstSeenAt: 0 };
});

const EMPTY: ListingSnapshot = {
  counts: new Map(),
  missing: 0,
  goneTotal: 0,
  transitions: [],
  lastFailureAt: undefined,
  oldest: new Map(),
  errors: [],
};

const STORED_FAMILIES: readonly Family<ProjectSnapshot>[] = [
  {
    name: 'evalwatch_project_configured_timestamp_seconds',
    type: 'gauge',
    help: 'When the project was first configured, Unix time in seconds.',
    samples: SINGLE,
    values: ({ configuredAt }) => [toSeconds(configuredAt)],
  },
  {
    name: 'evalwatch_poll_last_success_timestamp_seconds',
    type: 'gauge',
    help: 'When the last successful poll of the project was committed, Unix time in seconds.',
    samples: SINGLE,
    values: ({ health }) => [toSeconds(health.lastSuccessAt)],
  },
];

const PROMPT_FAMILIES: readonly Family<ListingSnapshot>[] = [
  ...familiesOf('prompt'),
  {
    name: 'evalwatch_prompts_missing',
    type: 'gauge',
    help: 'Prompts that were missing from the last complete listing and are not gone yet.',
    samples: SINGLE,
    values: ({ missing }) => [missing],
  },
  {
    name: 'evalwatch_prompts_gone_total',
    type: 'counter',
    help: 'Prompts that are gone: missing from several complete listings in a row.',
    samples: SINGLE,
    values: ({ goneTotal }) => [goneTotal],
  },
  {
    name: 'evalwatch_prompt_oldest_in_state_timestamp_seconds',
    type: 'gauge',
    help: 'When the prompt that has been PENDING or RUNNING for the longest time was first seen in that status, Unix time in seconds.',
    samples: UNFINISHED_STATUSES.map((status) => ({ labels: { status } })),
    values: ({ oldest }) => UNFINISHED_STATUSES.map((status) => toSeconds(oldest.get(status))),
  },
];

/** Metrics of the failures of a project with one error_id. */
const ERROR_FAMILIES: readonly Family<ErrorTotal>[] = [
  {
    name: 'evalwatch_prompt_failures_total',
    type: 'counter',
    help: 'Reported failures of prompts by error_id: the first 20 error_ids of the project, other, and none without one.',
    samples: SINGLE,
    values: ({ count }) => [count],
  },
  {
    name: 'evalwatch_prompt_error_first_seen_timestamp_seconds',
    type: 'gauge',
    help: 'When a failure of the project was first reported with the error_id, Unix time in seconds.',
    samples: SINGLE,
    values: ({ label, firstSeenAt }) => [isErrorId(label) ? toSeconds(firstSeenAt) : undefined],
  },
];

const DATASET_FAMILIES = familiesOf('dataset');

/** Metrics that prompts and datasets have in common. */
function familiesOf(kind: Kind): readonly Family<ListingSnapshot>[] {
  const statuses = statusesOf(kind);
  const pairs = transitionPairs(kind);
  const positions = positionsOf(pairs);
  return [
    {
      name: `evalwatch_${kind}s`,
      type: 'gauge',
      help: `Number of ${kind}s by last known status.`,
      samples: statuses.map((status) => ({ labels: { status } })),
      values: ({ counts }) => statuses.map((status) => counts.get(status) ?? 0),
    },
    {
      name: `evalwatch_${kind}_transitions_total`,
      type: 'counter',
      help: `Committed moves of ${kind}s from one status to another; from NEW when first seen.`,
      samples: pairs.map(([from, to]) => ({ labels: { from, to } })),
      values: ({ transitions }) => {
        const counts = Array<number>(pairs.length).fill(0);
        for (const [from, to, count] of transitions) {
          const position = positions.get(from)?.get(to);
          if (position !== undefined) counts[position] = count;
        }
        return counts;
      },
    },
    {
      name: `evalwatch_${kind}_last_failure_timestamp_seconds`,
      type: 'gauge',
      help: `When the newest move of a ${kind} to FAILED was committed, Unix time in seconds.`,
      samples: SINGLE,
      values: ({ lastFailureAt }) => [toSeconds(lastFailureAt)],
    },
  ];
}

function positionsOf(
  pairs: ReturnType<typeof transitionPairs>,
): ReadonlyMap<Origin, ReadonlyMap<Status, number>> {
  const positions = new Map<Origin, Map<Status, number>>();
  for (const [position, [from, to]] of pairs.entries()) {
    const row = positions.get(from) ?? new Map<Status, number>();
    positions.set(from, row.set(to, position));
  }
  return positions;
}

/** Creates the renderers of the series of projects that are read from the store (docs/metrics.md, "store"). */
export function createStoreRenderers(): readonly RenderProjects<ScrapedProject>[] {
  return [
    familyRenderer(STORED_FAMILIES, ({ counts, stored }, add) => {
      if (stored !== undefined) add(counts.labels, stored);
    }),
    familyRenderer(PROMPT_FAMILIES, ({ counts, stored }, add) => {
      if (stored !== undefined) add(counts.labels, stored.listings.get('prompt') ?? EMPTY);
    }),
    familyRenderer(DATASET_FAMILIES, ({ counts, stored }, add) => {
      if (stored === undefined || !counts.datasets) return;
      add(counts.labels, stored.listings.get('dataset') ?? EMPTY);
    }),
    familyRenderer(ERROR_FAMILIES, ({ counts, stored }, add) => {
      if (stored === undefined) return;
      const errors = stored.listings.get('prompt')?.errors ?? [];
      for (const error of withSpecialLabels(errors)) {
        add(`${counts.labels},${renderLabels({ error_id: error.label })}`, error);
      }
    }),
  ];
}

import type { Figures } from '../../../proof/row.ts';
import type { SoakReport } from './soak.ts';
import { slopePerHour } from './vital-signs.ts';
import type { Life } from './watch.ts';

const MIB = 1024 * 1024;
/** Fraction of a life, at its start, in which memory may grow. */
const WARM_UP = 1 / 5;

/** Returns the figures of a soak for people. Counters that a daemon only has in memory are as of its last scrape. */
export function figuresOf({
  observation,
  lives,
  listings,
  comparisons,
  troubles,
  differences,
}: SoakReport): Figures {
  const { runs, transitions, failures } = observation;
  const samples = lives.flatMap((life) => [...life.samples]);
  const sum = (metric: string, label = '') =>
    samples
      .filter(([series]) => series.startsWith(`${metric}{`) && series.includes(label))
      .reduce((total, [, value]) => total + value, 0);
  const reasons = new Set(
    samples.flatMap(
      ([series]) => /^evalwatch_poll_failures_total\{.*reason="(\w+)"/.exec(series)?.[1] ?? [],
    ),
  );
  const failed = [...reasons]
    .map((reason) => [reason, sum('evalwatch_poll_failures_total', `reason="${reason}"`)] as const)
    .filter(([, polls]) => polls > 0)
    .map(([reason, polls]) => `${reason} ${polls}`);
  const lines = runs.flatMap((run) => run.lines);
  const told = lines.filter(({ event }) => event === 'prompt.failed');
  const repeated = told.length - new Set(told.map((line) => line.transition_id)).size;
  const pending = failures.filter((row) => !row.settled).length;
  const polls = sum('evalwatch_polls_total');
  const inTime = sum('evalwatch_scheduler_lag_seconds_bucket', 'le="1"');
  const started = sum('evalwatch_scheduler_lag_seconds_bucket', 'le="+Inf"');
  return [
    ['polls', `${polls}, ${listings} listings served whole`],
    ['failed polls', `${sum('evalwatch_poll_failures_total')} (${failed.join(', ')})`],
    ['requests sent again', String(sum('evalwatch_api_retries_total'))],
    ['anomalous items', String(sum('evalwatch_item_anomalies_total'))],
    [
      'ticks skipped, missed; polls over 1 s late',
      `${sum('evalwatch_scheduler_overlapped_runs_total')}, ${sum('evalwatch_scheduler_missed_runs_total')}; ${started - inTime} of ${started}`,
    ],
    ['failed commits', String(sum('evalwatch_store_commit_failures_total'))],
    ['transitions', String(transitions.length)],
    [
      'failures',
      `${failures.length}, ${pending} pending; ${told.length} lines, ${repeated} repeats`,
    ],
    ['kills', String(runs.filter(({ killed }) => killed).length)],
    ['phases of a failing disk', String(troubles)],
    ...growthOf(lives),
    ...lagOf(lives),
    ['differences from the oracle', `${differences.length} in ${comparisons} comparisons`],
  ];
}

/** Returns the figures of the longest life. */
function growthOf(lives: readonly Life[]): Figures {
  const [longest] = lives.toSorted((one, other) => ageOf(other) - ageOf(one));
  if (longest === undefined) return [];
  const warm = ageOf(longest) * WARM_UP;
  const vital = longest.vital.filter(({ age }) => age >= warm);
  const inner = longest.inner.filter(({ age }) => age >= warm);
  const rss = vital.map(({ rssBytes }) => rssBytes / MIB);
  const heap = inner.map(({ heapBytes }) => heapBytes / MIB);
  const descriptors = vital.map((sample) => sample.descriptors);
  const range = (values: readonly number[]) =>
    `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
  const slope = (bytes: number) => `${(bytes / MIB).toFixed(1)} MiB an hour`;
  return [
    [
      'longest life without a kill',
      `${(ageOf(longest) / 60_000).toFixed(1)} min, its first ${(warm / 60_000).toFixed(1)} left out below`,
    ],
    [
      'its memory (RSS)',
      `${range(rss)} MiB, ${slope(slopePerHour(vital, ({ rssBytes }) => rssBytes))}, ${vital.length} samples`,
    ],
    [
      'its heap',
      `${range(heap)} MiB, ${slope(slopePerHour(inner, ({ heapBytes }) => heapBytes))}, ${inner.length} samples`,
    ],
    [
      'its descriptors',
      `${range(descriptors)}, ${slopePerHour(vital, (sample) => sample.descriptors).toFixed(1)} an hour, ${vital.length} samples`,
    ],
  ];
}

function lagOf(lives: readonly Life[]): Figures {
  const lags = lives.flatMap(({ inner }) => inner.map(({ lag }) => lag));
  if (lags.length === 0) return [];
  const ms = (seconds: number) => `${(seconds * 1000).toFixed(0)} ms`;
  const middle = (of: 'p50' | 'p99') =>
    ms(lags.map((lag) => lag[of]).toSorted((one, other) => one - other)[lags.length >> 1] ?? NaN);
  const worst = (of: 'p99' | 'max') => ms(Math.max(...lags.map((lag) => lag[of])));
  return [
    [
      "event loop's lag (nodejs_eventloop_lag_*)",
      `p50 ${middle('p50')}, p99 ${middle('p99')} (medians of ${lags.length} scrapes; worst p99 ${worst('p99')}), max ${worst('max')}`,
    ],
  ];
}

function ageOf({ vital }: Life): number {
  return vital.at(-1)?.age ?? 0;
}

import { configApplied, UNLEARNED } from './expected.ts';
import { join } from 'node:path';
import { NO_PROMPTS } from '../../src/domain/experiment.ts';
import { KINDS, type Kind } from '../../src/domain/status.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { POLL_FAILURE_REASONS, type PollFailureReason } from '../../src/monitor/errors.ts';
import { afterFailure, afterSuccess, NEVER_POLLED } from '../../src/monitor/memory.ts';
import type { ExperimentRow, Store } from '../../src/monitor/ports/store.ts';
import { openStoreInProcess } from './store-in-process.ts';
import { parseExposition, type ParsedFamily } from '../unit/metrics/parse-exposition.ts';
import { fakeClock, listingOf } from './monitor.ts';
import { temporaryDirectory } from './temporary.ts';
import { compareListing, type Changes } from '../../src/domain/transition.ts';
import { withCause } from './failures.ts';

const PROJECT = 'alpha';
const EXPERIMENT: ExperimentRow = {
  key: 1,
  project: PROJECT,
  experiment: 'nightly-42',
  state: 'running',
  counts: { ...NO_PROMPTS, RUNNING: 1 },
};

/**
 * Returns the families of /metrics over a real store, by name. `never polled`: one project, which watches its datasets.
 * `everything happened`: every metric has every value, because prompts and datasets wait and failed, there are several
 * workers, and a project fails for each reason.
 */
export async function scrapeOf(
  history: 'never polled' | 'everything happened',
): Promise<ReadonlyMap<string, ParsedFamily>> {
  const clock = fakeClock();
  await using directory = await temporaryDirectory();
  const store = await openStoreInProcess({
    path: join(directory.path, 'evalwatch.db'),
    clock,
    emit: () => {},
  });
  try {
    const failing = history === 'everything happened' ? POLL_FAILURE_REASONS : [];
    const projects = [PROJECT, ...failing.map((reason) => `failing for ${reason}`)];
    await store.configureProjects(projects, clock.now());
    for (const reason of failing) await fail(store, `failing for ${reason}`, reason, clock.now());
    if (history === 'everything happened') {
      await show(store, { a: 'PENDING', b: 'RUNNING', c: 'RUNNING', d: 'RUNNING' }, clock.now());
      await show(store, { a: 'PENDING', b: 'RUNNING', c: 'FAILED', d: 'FAILED' }, clock.now());
      const [failure] = await store.pendingFailures({ limitPerProject: 1 });
      const errorInfo = { error_id: 'MODEL_TIMEOUT', error_msg: 'too slow' };
      if (failure === undefined) throw new Error('nothing is pending');
      await store.settleFailure(
        failure,
        withCause({ errorInfo, errorMsgTruncated: false }),
        clock.now(),
      );
    }
    const { projects: snapshots } = await store.snapshot();
    const health = new Map(snapshots.map((each) => [each.project, each.health]));
    const metrics = new Metrics({
      healthOf: (id) => health.get(id) ?? NEVER_POLLED,
      version: '1.2.3',
      revision: 'abc',
      storeInfo: { engine: 'sqlite', version: '3.54.0' },
      logLines: { debug: 0, info: 0, warn: 0, error: 0 },
      clock,
      store,
      schedule: () => ({ nextPollAt: clock.now(), maxIntervalSeconds: 30 }),
      isQuiet: () => history === 'everything happened',
      externalUrl: () =>
        history === 'everything happened' ? 'https://watch.example.com' : undefined,
      expectationsOf: () => ({
        ...UNLEARNED,
        ...(history === 'everything happened' && {
          PENDING: { ...UNLEARNED.PENDING, typicalMs: 1000 },
          RUNNING: { ...UNLEARNED.RUNNING, typicalMs: 1000 },
        }),
      }),
      ...(history === 'everything happened' && {
        experiments: async () => [EXPERIMENT],
        worker: { owns: () => true, leaseExpiresAt: () => clock.now() },
      }),
      receivers: () =>
        history === 'everything happened'
          ? [{ name: 'search-chat', oldestDueAt: clock.now() }]
          : [],
      emit: () => {},
    });
    metrics.observe(configApplied(projects, (id) => id === PROJECT));
    return parseExposition(Buffer.concat(await metrics.render()).toString());
  } finally {
    await store.close();
  }
}

/** Commits a successful poll that showed these statuses, of prompts and of datasets. */
async function show(
  store: Store,
  statuses: Readonly<Record<string, string>>,
  at: number,
): Promise<void> {
  const { token, listings } = await store.loadKnown(PROJECT, KINDS);
  const changes = new Map<Kind, Changes>();
  for (const [kind, known] of listings) {
    const detected = await compareListing(known, listingOf(statuses), { at, missingAfter: 3 });
    changes.set(kind, detected.changes);
  }
  const health = afterSuccess(NEVER_POLLED, at, 60_000);
  await store.commitPoll({ project: PROJECT, at, health, token, listings: changes });
}

async function fail(
  store: Store,
  project: string,
  reason: PollFailureReason,
  at: number,
): Promise<void> {
  const { token } = await store.loadKnown(project, KINDS);
  const health = afterFailure(NEVER_POLLED, at, { reason, message: 'failed', details: {} });
  await store.commitPoll({ project, at, health, token, listings: new Map() });
}

/** Returns the label names of a metric, without the `le` of its buckets. */
export function labelsOfFamily({ samples }: ParsedFamily): ReadonlySet<string> {
  const labels = new Set([...samples.keys()].flatMap(labelPairs).map(([label]) => label));
  labels.delete('le');
  return labels;
}

/** Returns the label names of each series name in queries; `_bucket` and the like are separate names. */
export function labelsOfSeries(
  families: ReadonlyMap<string, ParsedFamily>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const labels = new Map<string, ReadonlySet<string>>();
  for (const series of [...families.values()].flatMap(({ samples }) => [...samples.keys()])) {
    const [name = ''] = /^[^{]+/.exec(series) ?? [];
    const own = new Set(labelPairs(series).map(([label]) => label));
    labels.set(name, own.union(labels.get(name) ?? new Set()));
  }
  return labels;
}

/** Returns the labels of a series in exposition format, with values still escaped. */
export function labelPairs(series: string): readonly (readonly [label: string, value: string])[] {
  return series
    .matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)
    .map(([, label = '', value = '']) => [label, value] as const)
    .toArray();
}

import { text } from 'node:stream/consumers';
import { BY_DEFAULT, UNLEARNED } from '../../support/expected.ts';
import { afterPoll, NEVER_POLLED } from '../../../src/monitor/poll-health.ts';
import { parseExposition } from '../metrics/parse-exposition.ts';
import { listing, setUp, snapshotOf, stored } from '../metrics/setup.ts';

const LABELS_OF_A_TARGET = ['job', 'instance'];

/** Returns every metric that a scrape can show, with its labels, and those that Prometheus makes itself. */
export async function exportedMetrics(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const full = listing({
    lastFailureAt: 1000,
    errors: [{ label: 'MODEL_TIMEOUT', count: 1, firstSeenAt: 1000 }],
    oldest: new Map([
      ['PENDING', 1000],
      ['RUNNING', 1000],
    ]),
  });
  const health = afterPoll(NEVER_POLLED, { failure: undefined, at: 999, maxIntervalMs: 60_000 });
  const failing = afterPoll(health, {
    failure: { reason: 'auth', message: 'refused', details: {} },
    at: 1000,
    maxIntervalMs: 60_000,
  });
  const listings = new Map([
    ['prompt' as const, full],
    ['dataset' as const, full],
  ]);
  const snapshot = snapshotOf(
    [stored('p', { health, listings }), stored('failing', { health: failing })],
    { count: 1, oldestAt: 1000 },
  );
  const { metrics } = setUp({
    store: { snapshot: async () => snapshot, size: async () => ({ database: 1, wal: 1 }) },
    worker: { owns: () => true, leaseExpiresAt: () => 1000 },
    expectationsOf: () => ({ ...UNLEARNED, RUNNING: { ...UNLEARNED.RUNNING, typicalMs: 1000 } }),
    schedule: () => ({ nextPollAt: 1000, maxIntervalSeconds: 10 }),
  });
  metrics.setProjects([
    { ...BY_DEFAULT, id: 'p', datasets: true, health },
    { ...BY_DEFAULT, id: 'failing', datasets: false, health: failing },
  ]);
  const exported = new Map([
    ['up', new Set(LABELS_OF_A_TARGET)],
    ['ALERTS', new Set(['alertname', 'alertstate', 'cause', ...LABELS_OF_A_TARGET])],
    ['ALERTS_FOR_STATE', new Set(['alertname', ...LABELS_OF_A_TARGET])],
  ]);
  for (const { samples } of parseExposition(await text(metrics.render())).values()) {
    for (const series of samples.keys()) {
      const [name = ''] = series.split('{');
      const labels = exported.get(name) ?? new Set(LABELS_OF_A_TARGET);
      for (const [, label = ''] of series.matchAll(/[{,](\w+)="/g)) labels.add(label);
      exported.set(name, labels);
    }
  }
  return exported;
}

import { dayOf, LEARNED_DAYS } from '../domain/limits.ts';
import { StoreError } from '../monitor/errors.ts';
import type { LearnedExpectations } from '../monitor/expectations.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Store } from '../monitor/ports/store.ts';
import { endProcess } from './process.ts';

const PRUNE_INTERVAL_MS = 60 * 60 * 1000;
/** Maximum delay of new limits after 0:00 UTC, of first typical durations, and of another attempt after the store failed. */
const LEARN_INTERVAL_MS = 15 * 1000;
const LOOK_INTERVAL_MS = 2000;

export interface MaintenanceOptions {
  readonly store: Pick<Store, 'prune'>;
  readonly expectations: Pick<LearnedExpectations, 'refresh'>;
  readonly retentionMs: number;
  readonly clock: Clock;
  /** Each looks at some files and takes up their changes. */
  readonly looks: readonly (() => Promise<unknown>)[];
}

/**
 * Prunes the store now and every hour, refreshes the expectations now and every 15 s, and calls each of `looks`
 * now and every 2 s. Returns the function that stops it.
 */
export function startMaintenance(options: MaintenanceOptions): () => void {
  const { store, expectations, retentionMs, clock, looks } = options;
  const prune = async () => {
    const now = clock.now();
    await store.prune({ before: now - retentionMs, firstDay: dayOf(now) - LEARNED_DAYS });
  };
  const stops = [
    repeat(clock, PRUNE_INTERVAL_MS, prune),
    repeat(clock, LEARN_INTERVAL_MS, expectations.refresh),
  ];
  for (const look of looks) stops.push(repeat(clock, LOOK_INTERVAL_MS, look));
  return () => {
    for (const stop of stops) stop();
  };
}

/** Does some work now and at an interval, unless it is still running. Returns the function that stops it. */
function repeat(clock: Clock, intervalMs: number, work: () => Promise<unknown>): () => void {
  let running: Promise<unknown> | undefined;
  const run = () => {
    running ??= work()
      .catch((error: unknown) => {
        // The store or the next scrape emits the failure, and the work is repeated.
        if (!(error instanceof StoreError)) endProcess(error);
      })
      .finally(() => {
        running = undefined;
      });
  };
  const timer = clock.every(intervalMs, run);
  run();
  return () => timer.cancel();
}

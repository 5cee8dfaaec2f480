import { dayOf, LEARNED_DAYS } from '../domain/limits.ts';
import { unlessStoreFails } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Engine } from './engine.ts';
import { endProcess } from './process.ts';

const PRUNE_INTERVAL_MS = 60 * 60 * 1000;
/** Maximum delay of new limits after 0:00 UTC, of first typical durations, and of another attempt after the store failed. */
const LEARN_INTERVAL_MS = 15 * 1000;
const LOOK_INTERVAL_MS = 2000;
/** How long the first scrapes wait for the limits of the projects, ms. */
const MAX_LEARNING_MS = 5000;

/**
 * Learns the limits of the projects. Resolves when they are known, if the store fails, and at the latest after 5 s: an alert that
 * fires would resolve if a scrape after a restart lacked the limit (docs/specification.md#scrapes).
 */
export async function learnFirst({ expectations }: Engine, clock: Clock): Promise<void> {
  const late = Promise.withResolvers<void>();
  clock.timeout(MAX_LEARNING_MS, late.resolve).unref();
  await Promise.race([unlessStoreFails(() => expectations.refresh()), late.promise]);
}

/**
 * Prunes the store now and every hour, refreshes the expectations now and every 15 s, and calls each of `looks` now and every
 * 2 s, for changes of files. Ends with the shutdown of the engine.
 */
export function startMaintenance(
  engine: Engine,
  clock: Clock,
  looks: readonly (() => Promise<unknown>)[],
): void {
  const { store, expectations } = engine;
  const stopping = engine.shutdown.waits;

  async function repeat(intervalMs: number, work: () => Promise<unknown>): Promise<void> {
    try {
      while (!stopping.aborted) {
        // The store or the next scrape emits the failure.
        await unlessStoreFails(work);
        await clock.sleep(intervalMs, stopping);
      }
    } catch (error) {
      if (error !== stopping.reason) endProcess(error);
    }
  }

  void repeat(PRUNE_INTERVAL_MS, async () => {
    const now = clock.now();
    const before = now - engine.config.store.retentionMs;
    const receivers = { at: now, configured: engine.config.notify };
    await store.prune({ before, firstDay: dayOf(now) - LEARNED_DAYS, receivers });
  });
  void repeat(LEARN_INTERVAL_MS, expectations.refresh);
  for (const look of looks) void repeat(LOOK_INTERVAL_MS, look);
}

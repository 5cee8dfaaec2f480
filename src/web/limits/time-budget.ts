import type { Clock } from '../../monitor/ports/clock.ts';

export interface TimeBudgetOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Share of the time that may be spent, between 0 and 1. */
  readonly share: number;
  /** Maximum saving: time that may be spent without a pause after a rest, ms. */
  readonly burstMs: number;
  /** Longest pause after one piece of work, however long it took, ms. */
  readonly maxPauseMs: number;
}

/** A share of the time, which is saved while nothing is spent. */
export interface TimeBudget {
  /** Time until something may be spent, ms; 0 or less if it may be spent now. */
  msUntilFree(): number;
  /** Begins to count the time as spent; the returned function ends it. */
  spend(): () => void;
}

/** Creates a budget with the maximum saving. */
export function createTimeBudget({
  clock,
  share,
  burstMs,
  maxPauseMs,
}: TimeBudgetOptions): TimeBudget {
  let left = burstMs;
  let countedAt = clock.monotonic();

  function count(spent: number): void {
    const now = clock.monotonic();
    const balance = left + (now - countedAt) * share - spent;
    countedAt = now;
    // After very long work, for example while the store hangs, the next client must not wait for minutes.
    left = Math.max(-maxPauseMs * share, Math.min(burstMs, balance));
  }

  return {
    msUntilFree: () => {
      count(0);
      return -left / share;
    },
    spend: () => {
      const begunAt = clock.monotonic();
      return () => count(clock.monotonic() - begunAt);
    },
  };
}

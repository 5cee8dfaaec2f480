import type { Clock } from '../../monitor/ports/clock.ts';

export interface TimeBudgetOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Part of the time that may be spent, between 0 and 1. */
  readonly share: number;
  /** Time that may be spent at once after a rest, ms. */
  readonly burstMs: number;
  /** Longest pause after one piece of work, however long it took, ms. */
  readonly maxPauseMs: number;
}

/** A share of the time, which fills up while nothing is spent. */
export interface TimeBudget {
  /** How long to wait until something may be spent, ms; 0 or less if it may be now. */
  msUntilFree(): number;
  /** Begins to count the time as spent; the returned function ends it. */
  spend(): () => void;
}

/** Creates a budget that is full. */
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
    // Work that takes very long, as while the store hangs, must not keep the next client out for minutes.
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

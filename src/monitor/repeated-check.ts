import type { Clock, Timer } from './ports/clock.ts';

/** Repeats a check, one at a time. */
export interface RepeatedCheck {
  /** Checks now and from now on. */
  start(): void;
  /** Checks now, or once more after the check that runs. */
  wake(): void;
  /** Starts no further checks; resolves when the running one has ended. */
  stop(): Promise<void>;
}

export interface RepeatedCheckOptions {
  readonly check: () => Promise<void>;
  /** Returns the time from the end of a check to the next one, ms. */
  readonly intervalMs: () => number;
  readonly clock: Pick<Clock, 'timeout'>;
  /** Aborted when no check may begin any more. */
  readonly signal: AbortSignal;
}

export function createRepeatedCheck(options: RepeatedCheckOptions): RepeatedCheck {
  const { check, intervalMs, clock, signal } = options;
  let isStarted = false;
  let next: Timer | undefined;
  let checking: Promise<void> | undefined;
  let checkAgain = false;

  function wake(): void {
    if (!isStarted || signal.aborted) return;
    if (checking !== undefined) {
      checkAgain = true;
      return;
    }
    checkAgain = false;
    next?.cancel();
    checking = check().finally(() => {
      checking = undefined;
      if (checkAgain) wake();
      else if (isStarted) next = clock.timeout(intervalMs(), wake);
    });
  }

  return {
    start: () => {
      isStarted = true;
      wake();
    },
    wake,
    stop: async () => {
      isStarted = false;
      next?.cancel();
      await checking;
    },
  };
}

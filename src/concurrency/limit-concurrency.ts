/** Runs the work it is called with, in the order of the calls, within a limit of concurrency. */
export type ConcurrencyLimit = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Limits how long work waits for a slot. Work that reaches the limit is rejected with `error` and never runs. */
export interface WaitLimit {
  readonly maxMs: () => number;
  /** Calls back after a time, ms. */
  readonly timeout: (ms: number, callback: () => void) => { cancel(): void };
  /** Rejects all work that is waiting when it aborts. */
  readonly signal: AbortSignal | undefined;
  readonly error: () => Error;
}

/** Returns a function that runs at most `max` pieces of work at a time; with a maximum of 1, a serial queue. */
export function limitConcurrency(max: number, waitLimit?: WaitLimit): ConcurrencyLimit {
  const waiting = new Set<PromiseWithResolvers<void>>();
  let free = max;

  async function waitForSlot(): Promise<void> {
    const slot = Promise.withResolvers<void>();
    waiting.add(slot);
    const timer = waitLimit?.timeout(waitLimit.maxMs(), () => giveUp(slot, waitLimit));
    try {
      await slot.promise;
    } finally {
      timer?.cancel();
    }
  }

  function giveUp(slot: PromiseWithResolvers<void>, { error }: WaitLimit): void {
    if (waiting.delete(slot)) slot.reject(error());
  }

  /** Passes a slot on to the work that has waited longest. */
  function releaseSlot(): void {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next.resolve();
  }

  waitLimit?.signal?.addEventListener('abort', () => {
    for (const slot of waiting) giveUp(slot, waitLimit);
  });

  return async (work) => {
    if (free > 0) free -= 1;
    else await waitForSlot();
    try {
      return await work();
    } finally {
      releaseSlot();
    }
  };
}

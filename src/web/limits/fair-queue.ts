import type { Asker } from './client.ts';
import type { TimeBudget } from './time-budget.ts';
import { createWaitingLines, type WaitingLimits } from './waiting-lines.ts';

export interface FairQueueOptions extends WaitingLimits {
  /** What all turns together may take; without it they follow each other without a pause. */
  readonly budget?: TimeBudget;
  /** A caller whose turn has not come by then is sent away; without it callers wait as long as it takes. */
  readonly maxWaitMs?: number;
}

/** Lets callers work one after the other, the clients in turn. */
export interface FairQueue {
  /**
   * Resolves when the caller may work, until it disposes of its turn; with undefined if too many wait, or it waited in
   * vain, or has gone.
   */
  waitForTurn(asker: Asker): Promise<Disposable | undefined>;
}

type Waiter = (turn: Disposable | undefined) => void;

/**
 * Creates turns. All the time from the grant of a turn to its end counts, also while other work has the event loop: the
 * store that a turn waits for is busy, too.
 */
export function createFairQueue({ budget, maxWaitMs, ...limits }: FairQueueOptions): FairQueue {
  const lines = createWaitingLines<Waiter>(limits);
  let isTaken = false;
  let pause: NodeJS.Timeout | undefined;

  function grantNext(): void {
    if (isTaken || pause !== undefined || lines.isEmpty()) return;
    const ms = budget?.msUntilFree() ?? 0;
    if (ms > 0) {
      pause = setTimeout(resume, ms).unref();
      return;
    }
    isTaken = true;
    lines.take()?.(begin());
  }

  function resume(): void {
    pause = undefined;
    grantNext();
  }

  function begin(): Disposable {
    const stopSpending = budget?.spend();
    return {
      [Symbol.dispose]: () => {
        stopSpending?.();
        isTaken = false;
        grantNext();
      },
    };
  }

  return {
    waitForTurn: async ({ client, gone }) => {
      if (gone?.aborted === true) return undefined;
      const { promise, resolve } = Promise.withResolvers<Disposable | undefined>();
      const leave = () => {
        lines.remove(client, resolve);
        resolve(undefined);
      };
      lines.add(client, resolve)?.(undefined);
      grantNext();
      const timer = maxWaitMs === undefined ? undefined : setTimeout(leave, maxWaitMs).unref();
      gone?.addEventListener('abort', leave);
      return await promise.finally(() => {
        clearTimeout(timer);
        gone?.removeEventListener('abort', leave);
      });
    },
  };
}

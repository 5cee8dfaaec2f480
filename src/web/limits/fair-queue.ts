import type { Requester } from './client.ts';
import type { TimeBudget } from './time-budget.ts';
import { createWaitingLines, type WaitingLimits } from './waiting-lines.ts';

export interface FairQueueOptions extends WaitingLimits {
  /** Time budget of all turns together; without it, turns follow each other without a pause. */
  readonly budget?: TimeBudget;
  /** Maximum wait for a turn, ms; without it, callers wait without a limit. */
  readonly maxWaitMs?: number;
}

/** A queue in which one caller works at a time, and clients take turns. */
export interface FairQueue {
  /**
   * Resolves to a turn, which lasts until the caller disposes of it. Resolves to undefined if too many wait, the wait is
   * too long, or the client is gone.
   */
  waitForTurn(requester: Requester): Promise<Disposable | undefined>;
}

type Waiter = (turn: Disposable | undefined) => void;

/**
 * Creates a fair queue. The budget is charged with the wall time of a turn, also while other work uses the event loop: the
 * store that the turn waits for is busy, too.
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

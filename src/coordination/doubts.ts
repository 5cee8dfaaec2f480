import type { Clock } from '../monitor/ports/clock.ts';
import type { Coordinator } from './ports.ts';
import { withTimeout } from './timeout.ts';

/** Whether this worker and the database may regard other projects as its own. */
export interface Doubts {
  /** A request has failed: other projects may be recorded, even if their number is the same. */
  raise(): void;
  /** A project was lost: compares the numbers again. */
  recount(): void;
  /** The projects are the same again. */
  settle(): void;
  /** Compares the numbers once a lease. @throws {StoreError} */
  exist(isPossible: (recorded: number) => boolean): Promise<boolean>;
}

export interface DoubtsOptions {
  readonly worker: string;
  readonly coordinator: Pick<Coordinator, 'countOwned'>;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  readonly leaseMs: number;
  /** Maximum wait for an answer of the database, ms. */
  readonly timeoutMs: number;
}

export function createDoubts(options: DoubtsOptions): Doubts {
  const { worker, coordinator, clock, leaseMs, timeoutMs } = options;
  let isRaised = false;
  /** When the numbers are compared next, monotonic ms. */
  let countAt = Number.NEGATIVE_INFINITY;

  return {
    raise: () => {
      isRaised = true;
    },
    recount: () => {
      countAt = Number.NEGATIVE_INFINITY;
    },
    settle: () => {
      isRaised = false;
    },
    exist: async (isPossible) => {
      if (isRaised) return true;
      if (clock.monotonic() < countAt) return false;
      const recorded = await withTimeout(coordinator.countOwned(worker), timeoutMs, clock);
      countAt = clock.monotonic() + leaseMs;
      return !isPossible(recorded);
    },
  };
}

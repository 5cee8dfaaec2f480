import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { LostProjects } from './lost-projects.ts';
import type { Beat, Coordinator, WorkerIdentity } from './ports.ts';
import { withTimeout } from './timeout.ts';

/** Current lease of this worker. A lost lease never comes back; the next one has another term. */
export interface Lease {
  /** Whether the lease holds. Reads the clock, because the timers of a suspended process fire late and in any order. */
  isHeld(): boolean;
  /** Number of the lease. Answers to requests of an earlier term are ignored. */
  term(): number;
  /** End of the newest lease, epoch ms; undefined before the first one. */
  expiresAt(): number | undefined;
  /**
   * Renews the lease, or begins another one if it was lost. Undefined if the answer came too late to count.
   * @throws {StoreError}
   */
  renew(): Promise<Beat | undefined>;
  /** Ignores later answers, so that the lease ends when it expires or when the worker leaves. */
  close(): void;
}

export interface LeaseOptions {
  readonly coordinator: Pick<Coordinator, 'join' | 'beat'>;
  readonly identity: () => WorkerIdentity;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Maximum wait for an answer of the database, ms. */
  readonly timeoutMs: number;
  readonly onLost: () => void;
  /** Released before another lease begins. */
  readonly lost: Pick<LostProjects, 'release'>;
}

export function createLease(options: LeaseOptions): Lease {
  const { coordinator, identity, clock, timeoutMs, onLost, lost } = options;
  let term = 0;
  /** Monotonic ms; undefined without a lease. */
  let heldUntil: number | undefined;
  let expiresAt: number | undefined;
  let expiry: Timer | undefined;
  let isClosed = false;

  function isHeld(): boolean {
    if (heldUntil !== undefined && clock.monotonic() >= heldUntil) lose();
    return heldUntil !== undefined;
  }

  function lose(): void {
    expiry?.cancel();
    heldUntil = undefined;
    term += 1;
    onLost();
  }

  function accept(beat: Beat): Beat | undefined {
    if (isClosed) return undefined;
    heldUntil = beat.lease.until;
    ({ expiresAt } = beat.lease);
    expiry?.cancel();
    // A process that was suspended may read the answer after the lease has expired.
    if (!isHeld()) return undefined;
    expiry = clock.timeout(heldUntil - clock.monotonic(), isHeld);
    return beat;
  }

  return {
    isHeld,
    term: () => term,
    expiresAt: () => expiresAt,
    renew: async () => {
      if (isHeld()) {
        const termBefore = term;
        const renewed = await withTimeout(coordinator.beat(identity()), timeoutMs, clock);
        if (termBefore !== term) return undefined;
        if (renewed !== undefined) return accept(renewed);
        lose();
      }
      await lost.release();
      return accept(await withTimeout(coordinator.join(identity()), timeoutMs, clock));
    },
    close: () => {
      isClosed = true;
      expiry?.cancel();
    },
  };
}

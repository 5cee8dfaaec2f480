import { onAbort } from '../../concurrency/on-abort.ts';
import type { Clock, Timer } from '../../monitor/ports/clock.ts';
import type { SendPermit, RateLimit } from '../../monitor/ports/rate-limit.ts';
import { createClassQueues } from './class-queues.ts';

/** Class of a request: a listing of a healthy or of a failing project, or the detail of a prompt. */
export type RequestClass = 'healthy' | 'failing' | 'detail';

/** Permission to send one request. */
export interface Pass {
  /** Records that the request goes out now, for the rate. */
  readonly sent: () => void;
  /** Frees the slot when the request is over. */
  readonly release: () => void;
}

export interface Gate {
  /**
   * Waits for a slot and for the rate. Calls `classOf` whenever the class matters, as a project can start failing while a
   * request waits or is in flight. Rejects with the signal's reason when it aborts the wait.
   */
  enter(classOf: () => RequestClass, signal: AbortSignal): Promise<Pass>;
}

export interface GateOptions {
  readonly slots: number;
  readonly rate: RateLimit;
  readonly clock: Pick<Clock, 'timeout'>;
}

interface Waiter {
  readonly classOf: () => RequestClass;
  /** Ends the wait. */
  readonly admit: () => void;
}

/** After this many listings of healthy projects in a row, a failing project or a detail goes first. */
const HEALTHY_IN_A_ROW = 3;

/**
 * Creates a gate that shares slots and rate so that one failing project does not delay the polls of another, and neither
 * listings nor details starve (docs/specification.md#fairness).
 */
export function createGate({ slots, rate, clock }: GateOptions): Gate {
  const maxPerClass = Math.max(1, Math.floor(slots / 2));
  const maxLowPriority = Math.max(1, slots - 1);
  const waiting = createClassQueues<RequestClass, Waiter>();
  const inFlight = new Set<Waiter>();
  let healthyInARow = 0;
  let lastLowPriority: RequestClass = 'detail';
  let timer: Timer | undefined;

  /** Admits every request that may go, and schedules itself for when the rate allows the next one. */
  function admit(): void {
    timer?.cancel();
    while (waiting.size() > 0 && inFlight.size < slots) {
      const delay = rate.delay(waiting.size());
      if (delay > 0) {
        if (Number.isFinite(delay)) timer = clock.timeout(Math.ceil(delay), admit);
        return;
      }
      const next = choose();
      if (next === undefined) return;
      waiting.remove(next);
      inFlight.add(next);
      next.admit();
    }
  }

  function choose(): Waiter | undefined {
    const healthy = waiting.first('healthy');
    if (healthy !== undefined && healthyInARow < HEALTHY_IN_A_ROW) {
      healthyInARow += 1;
      return healthy;
    }
    const lowPriority = chooseLowPriority();
    if (lowPriority === undefined) return healthy;
    healthyInARow = 0;
    lastLowPriority = lowPriority.classOf();
    return lowPriority;
  }

  /** Alternates between failing projects and details, each within its limit. */
  function chooseLowPriority(): Waiter | undefined {
    const count = { healthy: 0, failing: 0, detail: 0 };
    for (const { classOf } of inFlight) count[classOf()] += 1;
    if (count.failing + count.detail >= maxLowPriority) return undefined;
    const order =
      lastLowPriority === 'detail'
        ? (['failing', 'detail'] as const)
        : (['detail', 'failing'] as const);
    for (const requestClass of order) {
      const waiter = count[requestClass] < maxPerClass ? waiting.first(requestClass) : undefined;
      if (waiter !== undefined) return waiter;
    }
    return undefined;
  }

  function passOf(waiter: Waiter, permit: SendPermit): Pass {
    return {
      sent: () => {
        permit.sent();
        admit();
      },
      release: () => {
        permit.cancelled();
        inFlight.delete(waiter);
        admit();
      },
    };
  }

  async function enter(classOf: () => RequestClass, signal: AbortSignal): Promise<Pass> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Pass>();
    const waiter: Waiter = { classOf, admit: () => resolve(passOf(waiter, rate.take())) };
    const giveUp = () => {
      waiting.remove(waiter);
      reject(signal.reason);
      admit();
    };
    const stopListening = onAbort(signal, giveUp);
    waiting.join(waiter);
    admit();
    try {
      return await promise;
    } finally {
      stopListening();
    }
  }

  rate.onShorterDelay?.(admit);
  return { enter };
}

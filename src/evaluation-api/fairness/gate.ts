import type { Departure, RateLimit } from '../../monitor/ports/rate-limit.ts';
import { createWaitingLines } from './waiting-lines.ts';

/** Whose request it is: a listing of a project that is healthy or in trouble, or a single prompt. */
export type RequestClass = 'healthy' | 'failing' | 'detail';

/** The right to send one request. */
export interface Pass {
  /** The request goes out now; the rate is measured by that. */
  readonly sent: () => void;
  /** The request is over: its slot is free. */
  readonly leave: () => void;
}

export interface Gate {
  /**
   * Waits for a slot and for the rate. A project can get into trouble while it waits or its request is in flight, so its
   * class is asked for whenever it matters. Rejects with the signal's reason when that aborts the wait.
   */
  enter(classOf: () => RequestClass, signal: AbortSignal): Promise<Pass>;
}

export interface GateOptions {
  readonly slots: number;
  readonly rate: RateLimit;
}

interface Waiter {
  readonly classOf: () => RequestClass;
  /** Its turn has come. */
  readonly admit: () => void;
}

/** The others get the request after so many of healthy listings. */
const HEALTHY_IN_A_ROW = 3;

/**
 * Shares slots and rate so that one project's trouble does not delay another's poll, and neither listings nor details
 * starve (docs/specification.md#fairness).
 */
export function createGate({ slots, rate }: GateOptions): Gate {
  const maxPerClass = Math.max(1, Math.floor(slots / 2));
  const maxOthers = Math.max(1, slots - 1);
  const waiting = createWaitingLines<RequestClass, Waiter>();
  const inFlight = new Set<Waiter>();
  let healthyInARow = 0;
  let lastOther: RequestClass = 'detail';
  let timer: NodeJS.Timeout | undefined;

  /** Lets in whoever may go, and sees to it that it is called again when that can change. */
  function admit(): void {
    clearTimeout(timer);
    while (waiting.size() > 0 && inFlight.size < slots) {
      const delay = rate.delay(waiting.size());
      if (delay > 0) {
        if (Number.isFinite(delay)) timer = setTimeout(admit, Math.ceil(delay));
        return;
      }
      const next = choose();
      if (next === undefined) return;
      waiting.leave(next);
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
    const other = chooseOther();
    if (other === undefined) return healthy;
    healthyInARow = 0;
    lastOther = other.classOf();
    return other;
  }

  /** Those in trouble and the details take turns, each within its limit. */
  function chooseOther(): Waiter | undefined {
    const count = { healthy: 0, failing: 0, detail: 0 };
    for (const { classOf } of inFlight) count[classOf()] += 1;
    if (count.failing + count.detail >= maxOthers) return undefined;
    const turns =
      lastOther === 'detail' ? (['failing', 'detail'] as const) : (['detail', 'failing'] as const);
    for (const turn of turns) {
      const waiter = count[turn] < maxPerClass ? waiting.first(turn) : undefined;
      if (waiter !== undefined) return waiter;
    }
    return undefined;
  }

  function passOf(waiter: Waiter, departure: Departure): Pass {
    return {
      sent: () => {
        departure.sent();
        admit();
      },
      leave: () => {
        departure.cancelled();
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
      waiting.leave(waiter);
      reject(signal.reason);
      admit();
    };
    signal.addEventListener('abort', giveUp, { once: true });
    waiting.join(waiter);
    admit();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  rate.listen?.(admit);
  return { enter };
}

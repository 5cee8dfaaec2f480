import { onAbort } from '../concurrency/on-abort.ts';
import { ApiError } from '../monitor/errors.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { RateLimit, SendPermit } from '../monitor/ports/service.ts';

/**
 * Class of a request, fixed when it enters: the first attempt of a listing whose project is healthy, any other attempt of a
 * listing, or the detail of a prompt.
 */
export type RequestClass = 'healthy' | 'failing' | 'detail';

/** Permission to send one request. */
export interface Pass {
  /** Records that the request goes out now, for the rate. */
  readonly sent: () => void;
  /** Frees the slot when the request is over; called once. */
  readonly release: () => void;
}

/** A wait that the service asked for with `Retry-After`. */
interface Hold {
  /** Monotonic time of its end, ms. */
  readonly until: number;
  /** Failure that asked for it. */
  readonly error: ApiError;
}

/** After this many listings of healthy projects in a row, a failing project or a detail goes first. */
const HEALTHY_IN_A_ROW = 3;
/** Tolerance of the rate, as requests arrive at the service less regularly than they are sent, ms. */
const MARGIN_MS = 20;

/**
 * Shares slots and rate so that one failing project does not delay the polls of another, and neither listings nor details
 * starve (docs/specification.md#fairness). Stops the requests with a key whose `Retry-After` is not over.
 */
export class Gate {
  readonly #slots: number;
  readonly #rate: RateLimit;
  readonly #clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** For each request that waits, what admits it; first in, first out. */
  readonly #waiting: Readonly<Record<RequestClass, (() => void)[]>> = {
    healthy: [],
    failing: [],
    detail: [],
  };
  readonly #inFlight: Record<RequestClass, number> = { healthy: 0, failing: 0, detail: 0 };
  /** By key. A restart drops them. */
  readonly #holds = new Map<string, Hold>();
  #healthyInARow = 0;
  #lastOther: RequestClass = 'detail';
  #timer: Timer | undefined;

  constructor(slots: number, rate: RateLimit, clock: Pick<Clock, 'monotonic' | 'timeout'>) {
    this.#slots = slots;
    this.#rate = rate;
    this.#clock = clock;
    rate.onShorterDelay?.(() => this.#admit());
  }

  /**
   * Waits for a slot and for the rate. Rejects with the signal's reason when it aborts the wait.
   * @throws {ApiError} with the reason of the answer that asked to wait, while the key is held
   */
  async enter(requestClass: RequestClass, key: string, signal: AbortSignal): Promise<Pass> {
    this.#throwIfHeld(key);
    signal.throwIfAborted();
    const queue = this.#waiting[requestClass];
    const { promise, resolve, reject } = Promise.withResolvers<Pass>();
    const admit = () => {
      stopListening();
      resolve(this.#passOf(requestClass, this.#rate.take()));
    };
    const stopListening = onAbort(signal, () => {
      queue.splice(queue.indexOf(admit), 1);
      reject(signal.reason);
      this.#admit();
    });
    queue.push(admit);
    this.#admit();
    const pass = await promise;
    try {
      // The answer to another request may have asked to wait meanwhile.
      this.#throwIfHeld(key);
    } catch (error) {
      pass.release();
      throw error;
    }
    return pass;
  }

  /** Holds the key if the answer has a `Retry-After` (docs/specification.md#retry-after). */
  hold(key: string, error: ApiError): void {
    const now = this.#clock.monotonic();
    for (const [held, { until }] of this.#holds) if (until <= now) this.#holds.delete(held);
    const until = now + (error.details.retryAfterMs ?? 0);
    if (until > (this.#holds.get(key)?.until ?? now)) this.#holds.set(key, { until, error });
  }

  #throwIfHeld(key: string): void {
    const hold = this.#holds.get(key);
    const leftMs = hold ? hold.until - this.#clock.monotonic() : 0;
    // A timer can end up to a millisecond early.
    if (hold === undefined || leftMs < 1) return;
    const { reason, details } = hold.error;
    throw new ApiError(reason, 'the service asked to wait; no request is sent until then', {
      statusCode: details.statusCode,
      detail: details.detail,
      retryAfterMs: Math.ceil(leftMs),
    });
  }

  #passOf(requestClass: RequestClass, permit: SendPermit): Pass {
    return {
      sent: () => {
        permit.sent();
        this.#admit();
      },
      release: () => {
        permit.cancelled();
        this.#inFlight[requestClass] -= 1;
        this.#admit();
      },
    };
  }

  /** Admits every request that may go, and schedules itself for when the rate allows the next one. */
  #admit(): void {
    this.#timer?.cancel();
    const { healthy, failing, detail } = this.#waiting;
    for (;;) {
      const waiting = healthy.length + failing.length + detail.length;
      if (waiting === 0 || this.#countInFlight() >= this.#slots) return;
      const delay = this.#rate.delay(waiting);
      if (Number.isFinite(delay) && delay > 0) {
        this.#timer = this.#clock.timeout(Math.ceil(delay), () => this.#admit());
      }
      const next = delay > 0 ? undefined : this.#chooseClass();
      if (next === undefined) return;
      this.#inFlight[next] += 1;
      this.#waiting[next].shift()?.();
    }
  }

  #countInFlight(): number {
    const { healthy, failing, detail } = this.#inFlight;
    return healthy + failing + detail;
  }

  /** Returns the class of the request that goes next; undefined if none may. */
  #chooseClass(): RequestClass | undefined {
    const hasHealthy = this.#waiting.healthy.length > 0;
    if (hasHealthy && this.#healthyInARow < HEALTHY_IN_A_ROW) {
      this.#healthyInARow += 1;
      return 'healthy';
    }
    const other = this.#chooseOther();
    if (other === undefined) return hasHealthy ? 'healthy' : undefined;
    this.#healthyInARow = 0;
    this.#lastOther = other;
    return other;
  }

  /** Alternates between failing projects and details, each within its limit. */
  #chooseOther(): RequestClass | undefined {
    const { failing, detail } = this.#inFlight;
    if (failing + detail >= Math.max(1, this.#slots - 1)) return undefined;
    const maxOfClass = Math.max(1, Math.floor(this.#slots / 2));
    const order: readonly RequestClass[] =
      this.#lastOther === 'detail' ? ['failing', 'detail'] : ['detail', 'failing'];
    return order.find(
      (each) => this.#waiting[each].length > 0 && this.#inFlight[each] < maxOfClass,
    );
  }
}

/**
 * Creates the rate limit of one process: at most `perSecond` requests in any second, rounded down; below 1, one request in
 * any 1/`perSecond` seconds (docs/specification.md#rate-limit). 0 means no limit. Counts a request when it is sent, which
 * a handshake can delay.
 */
export function createRateLimit(perSecond: number, clock: Pick<Clock, 'monotonic'>): RateLimit {
  if (perSecond === 0) return { delay: () => 0, take: () => ({ sent() {}, cancelled() {} }) };
  const maxInWindow = Math.max(1, Math.floor(perSecond));
  const windowMs = Math.max(1000, 1000 / perSecond) + MARGIN_MS;
  /** Times of the requests sent within the window, oldest first. */
  const sentAt: number[] = [];
  let reserved = 0;

  return {
    delay: () => {
      const now = clock.monotonic();
      while (sentAt[0] !== undefined && sentAt[0] + windowMs <= now) sentAt.shift();
      if (sentAt.length + reserved < maxInWindow) return 0;
      return sentAt[0] === undefined ? Number.POSITIVE_INFINITY : sentAt[0] + windowMs - now;
    },
    take: () => {
      reserved += 1;
      let isReserved = true;
      const giveBack = () => {
        if (isReserved) reserved -= 1;
        isReserved = false;
      };
      return {
        sent: () => {
          if (isReserved) sentAt.push(clock.monotonic());
          giveBack();
        },
        cancelled: giveBack,
      };
    },
  };
}

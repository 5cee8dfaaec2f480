import { StoreError } from '../monitor/errors.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { SendPermit, RateLimit } from '../monitor/ports/service.ts';
import type { Coordinator } from './ports.ts';

/** Length of a slice: a worker reserves places this far ahead, ms. */
const SLICE_MS = 500;
/** Maximum delay of a request after its place, ms. Over 10 s this adds less than 5 % to the rate (docs/specification.md#shared-rate). */
const MAX_DELAY_MS = 300;
/** Minimum time between two requests to the database, ms. */
const MIN_INTERVAL_MS = 50;
/** Time from a failed request to the database to the next one, and maximum age of its answer, ms. */
const RETRY_MS = 1000;

interface SharedRateOptions {
  readonly perSecond: number;
  readonly coordinator: Pick<Coordinator, 'grant'>;
  /** Returns the number of workers that share the rate. */
  readonly workers: () => number;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/**
 * A rate limit that several workers share. As requests wait, it reserves evenly spaced places for them in the database. An
 * unused place is lost. Without the database no request is sent.
 */
export class SharedRate implements RateLimit {
  readonly #options: SharedRateOptions;
  /** Reserved places: times at which a request may be sent, monotonic ms, ascending. */
  readonly #places: number[] = [];
  /** Times of the requests sent within the last slice, monotonic ms. */
  readonly #sentAt: number[] = [];
  #wake = () => {};
  #isRequesting = false;
  #nextRequestAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(options: SharedRateOptions) {
    this.#options = options;
  }

  onShorterDelay(wake: () => void): void {
    this.#wake = wake;
  }

  delay(waiting: number): number {
    const now = this.#options.clock.monotonic();
    dropUntil(this.#places, now - MAX_DELAY_MS);
    if (this.#places.length < waiting) this.#request(waiting, now);
    const [first = Infinity] = this.#places;
    return Math.max(0, first - now);
  }

  take(): SendPermit {
    const at = this.#places.shift();
    let isDue = at !== undefined;
    return {
      sent: () => {
        if (isDue) this.#sentAt.push(this.#options.clock.monotonic());
        isDue = false;
      },
      cancelled: () => {
        if (isDue && at !== undefined) this.#places.unshift(at);
        isDue = false;
      },
    };
  }

  #request(waiting: number, now: number): void {
    const { perSecond, workers, clock, onError } = this.#options;
    if (this.#isRequesting) return;
    this.#timer?.cancel();
    if (now < this.#nextRequestAt) {
      // A stop need not wait for it: nothing wants a place by then.
      this.#timer = clock.timeout(this.#nextRequestAt - now, () => this.#wake()).unref();
      return;
    }
    dropUntil(this.#sentAt, now - SLICE_MS);
    const fair = Math.max(1, Math.floor((perSecond * SLICE_MS) / 1000 / workers()));
    const wanted = Math.min(fair, Math.max(waiting, this.#sentAt.length)) - this.#places.length;
    if (wanted <= 0) return;
    this.#isRequesting = true;
    this.#nextRequestAt = now + MIN_INTERVAL_MS;
    this.#reserve(wanted)
      .catch((error: unknown) => {
        this.#nextRequestAt = clock.monotonic() + RETRY_MS;
        if (!(error instanceof StoreError)) onError(error);
      })
      .finally(() => {
        this.#isRequesting = false;
        this.#wake();
      });
  }

  async #reserve(wanted: number): Promise<void> {
    const { perSecond, coordinator, clock } = this.#options;
    const askedAt = clock.monotonic();
    const slice = await coordinator.grant(wanted, perSecond, SLICE_MS);
    const now = clock.monotonic();
    // The places of an answer that took longer, or that a stopped process reads late, are over.
    if (now - askedAt > RETRY_MS) return;
    const start = now + slice.startsInMs;
    for (let n = 0; n < slice.count; n += 1) this.#places.push(start + n * slice.spacingMs);
  }
}

function dropUntil(times: number[], ms: number): void {
  while (times[0] !== undefined && times[0] <= ms) times.shift();
}

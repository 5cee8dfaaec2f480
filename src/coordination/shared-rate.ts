import { StoreError } from '../monitor/errors.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { SendPermit, RateLimit } from '../monitor/ports/service.ts';
import { withTimeout } from './timeout.ts';
import type { Coordinator } from './ports.ts';

/** Length of a slice: a worker reserves places this far ahead, ms. */
const SLICE_MS = 500;
/** Maximum delay of a request after its place, ms. Over 10 s this adds less than 5 % to the rate (docs/specification.md#shared-rate). */
const MAX_DELAY_MS = 300;
/** Minimum time between two requests to the database, ms. */
const MIN_INTERVAL_MS = 50;
/** Time from a failed request to the database to the next one, and time limit of a request, ms. */
const RETRY_MS = 1000;

export interface SharedRateOptions {
  readonly perSecond: number;
  readonly grant: Coordinator['grant'];
  /** Returns the number of workers that share the rate. */
  readonly workers: () => number;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/**
 * Creates a rate limit that several workers share. As requests wait, it reserves evenly spaced places for them in the
 * database. An unused place is lost. Without the database no request is sent.
 */
export function createSharedRate(options: SharedRateOptions): Required<RateLimit> {
  const { perSecond, grant, workers, clock, onError } = options;
  /** Reserved places: times at which a request may be sent, monotonic ms, ascending. */
  const places: number[] = [];
  /** Times of the requests sent within the last slice, monotonic ms. */
  const sentAt: number[] = [];
  let wake = () => {};
  let isRequesting = false;
  let nextRequestAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  function delay(waiting: number): number {
    const now = clock.monotonic();
    dropUntil(places, now - MAX_DELAY_MS);
    if (places.length < waiting) requestPlaces(waiting, now);
    return places[0] === undefined ? Number.POSITIVE_INFINITY : Math.max(0, places[0] - now);
  }

  function requestPlaces(waiting: number, now: number): void {
    if (isRequesting) return;
    timer?.cancel();
    if (now < nextRequestAt) {
      // A stop need not wait for it: nothing wants a place by then.
      timer = clock.timeout(nextRequestAt - now, wake).unref();
      return;
    }
    dropUntil(sentAt, now - SLICE_MS);
    const fair = Math.max(1, Math.floor((perSecond * SLICE_MS) / 1000 / workers()));
    const wanted = Math.min(fair, Math.max(waiting, sentAt.length)) - places.length;
    if (wanted <= 0) return;
    isRequesting = true;
    nextRequestAt = now + MIN_INTERVAL_MS;
    fetchPlaces(wanted)
      .catch((error: unknown) => {
        nextRequestAt = clock.monotonic() + RETRY_MS;
        if (!(error instanceof StoreError)) onError(error);
      })
      .finally(() => {
        isRequesting = false;
        wake();
      });
  }

  async function fetchPlaces(wanted: number): Promise<void> {
    const askedAt = clock.monotonic();
    const slice = await withTimeout(grant(wanted, perSecond, SLICE_MS), RETRY_MS, clock);
    const now = clock.monotonic();
    // A process that was stopped meanwhile may read the answer before the time limit ends: its places are long over.
    if (now - askedAt > RETRY_MS) return;
    const start = now + slice.startsInMs;
    for (let n = 0; n < slice.count; n += 1) places.push(start + n * slice.spacingMs);
  }

  function take(): SendPermit {
    const at = places.shift();
    let isDue = at !== undefined;
    return {
      sent: () => {
        if (isDue) sentAt.push(clock.monotonic());
        isDue = false;
      },
      cancelled: () => {
        if (isDue && at !== undefined) places.unshift(at);
        isDue = false;
      },
    };
  }

  return {
    delay,
    take,
    onShorterDelay: (next) => {
      wake = next;
    },
  };
}

function dropUntil(times: number[], ms: number): void {
  while (times[0] !== undefined && times[0] <= ms) times.shift();
}

import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Departure, RateLimit } from '../monitor/ports/rate-limit.ts';
import { withTimeout } from './timeout.ts';
import type { Coordinator } from './ports.ts';

/** Length of the slice that a worker asks for, ms. */
const SLICE_MS = 500;
/** Maximum delay with which a place may be used, ms. Over 10 s this adds less than 5 % to the rate (docs/specification.md#shared-rate). */
const MAX_LATE_MS = 300;
/** Minimum time between two requests for places, ms. */
const MIN_ASK_MS = 50;
/** Time until places are requested again after a failure, and limit of a request, ms. */
const RETRY_MS = 1000;

export interface SharedRateOptions {
  readonly perSecond: number;
  readonly grant: Coordinator['grant'];
  /** Number of workers that share the rate. */
  readonly workers: () => number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/**
 * Creates a rate limit that takes slices of the shared rate as requests arrive. A slice is a stretch of time that no other
 * worker has; its places are evenly spaced, and unused ones are lost. Without the database no request is sent.
 */
export function createSharedRate(options: SharedRateOptions): Required<RateLimit> {
  const { perSecond, grant, workers, clock, onError } = options;
  /** Times at which a request may be sent, monotonic ms, ascending. */
  const departures: number[] = [];
  /** Times at which the requests of the last slice were sent. */
  const sentAt: number[] = [];
  let wake = () => {};
  let isAsking = false;
  let askAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  function delay(waiting: number): number {
    const now = clock.monotonic();
    dropUntil(departures, now - MAX_LATE_MS);
    if (departures.length < waiting) askFor(waiting, now);
    return departures[0] === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, departures[0] - now);
  }

  function askFor(waiting: number, now: number): void {
    if (isAsking) return;
    clearTimeout(timer);
    if (now < askAt) {
      timer = setTimeout(wake, askAt - now);
      return;
    }
    dropUntil(sentAt, now - SLICE_MS);
    const fair = Math.max(1, Math.floor((perSecond * SLICE_MS) / 1000 / workers()));
    const wanted = Math.min(fair, Math.max(waiting, sentAt.length)) - departures.length;
    if (wanted <= 0) return;
    isAsking = true;
    askAt = now + MIN_ASK_MS;
    ask(wanted)
      .catch((error: unknown) => {
        askAt = clock.monotonic() + RETRY_MS;
        if (!(error instanceof StoreError)) onError(error);
      })
      .finally(() => {
        isAsking = false;
        wake();
      });
  }

  async function ask(wanted: number): Promise<void> {
    const slice = await withTimeout(grant(wanted, perSecond, SLICE_MS), RETRY_MS);
    const start = clock.monotonic() + slice.startsInMs;
    for (let n = 0; n < slice.count; n += 1) departures.push(start + n * slice.spacingMs);
  }

  function take(): Departure {
    const at = departures.shift();
    let isDue = at !== undefined;
    return {
      sent: () => {
        if (isDue) sentAt.push(clock.monotonic());
        isDue = false;
      },
      cancelled: () => {
        if (isDue && at !== undefined) departures.unshift(at);
        isDue = false;
      },
    };
  }

  return {
    delay,
    take,
    listen: (next) => {
      wake = next;
    },
  };
}

function dropUntil(times: number[], ms: number): void {
  while (times[0] !== undefined && times[0] <= ms) times.shift();
}

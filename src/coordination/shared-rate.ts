import { StoreError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Departure, RateLimit } from '../monitor/ports/rate-limit.ts';
import { withTimeout } from './timeout.ts';
import type { Coordinator } from './ports.ts';

/** For how long ahead a worker asks, ms. */
const SLICE_MS = 500;
/** How late a place may be used, ms: over 10 s this adds less than 5 % to the rate (docs/specification.md#shared-rate). */
const LATEST_MS = 300;
/** Between two questions, ms: at least, and after one that failed. */
const ASK_EVERY_MS = 50;
const RETRY_MS = 1000;

export interface SharedRateOptions {
  readonly perSecond: number;
  readonly grant: Coordinator['grant'];
  /** Workers that share it. */
  readonly workers: () => number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Told of errors that are none of the store. */
  readonly onError: (error: unknown) => void;
}

/**
 * Takes slices of the rate as requests come, each a stretch of time that no other worker has: they follow each other evenly,
 * and what is not used is lost. Without the database nothing goes out.
 */
export function createSharedRate(options: SharedRateOptions): Required<RateLimit> {
  const { perSecond, grant, workers, clock, onError } = options;
  /** When a request may go out, monotonic ms, ascending. */
  const departures: number[] = [];
  /** When requests went out, of the last slice. */
  const taken: number[] = [];
  let wake = () => {};
  let asking = false;
  let askAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  function delay(waiting: number): number {
    const now = clock.monotonic();
    forgetUntil(departures, now - LATEST_MS);
    if (departures.length < waiting) askFor(waiting, now);
    return departures[0] === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, departures[0] - now);
  }

  function askFor(waiting: number, now: number): void {
    if (asking) return;
    clearTimeout(timer);
    if (now < askAt) {
      timer = setTimeout(wake, askAt - now);
      return;
    }
    forgetUntil(taken, now - SLICE_MS);
    const fair = Math.max(1, Math.floor((perSecond * SLICE_MS) / 1000 / workers()));
    const wanted = Math.min(fair, Math.max(waiting, taken.length)) - departures.length;
    if (wanted <= 0) return;
    asking = true;
    askAt = now + ASK_EVERY_MS;
    ask(wanted)
      .catch((error: unknown) => {
        askAt = clock.monotonic() + RETRY_MS;
        if (!(error instanceof StoreError)) onError(error);
      })
      .finally(() => {
        asking = false;
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
        if (isDue) taken.push(clock.monotonic());
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

function forgetUntil(times: number[], ms: number): void {
  while (times[0] !== undefined && times[0] <= ms) times.shift();
}

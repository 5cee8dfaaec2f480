import type { Clock, Timer } from '../monitor/ports/clock.ts';

/** Time for which a requested beat waits for further requests, ms. */
const GATHER_MS = 200;

/** Repeats a beat, one at a time, until it is stopped. */
export interface Heartbeat {
  /** Beats now, unless a beat is running. */
  beatNow(): void;
  /** Beats within 200 ms; one beat serves all requests of that time. */
  beatSoon(): void;
  /** Schedules the next beat after the interval, unless it is due sooner. */
  schedule(): void;
  /** Resolves when the running beat has ended; at once if none runs. */
  idle(): Promise<void>;
  /** Prevents further beats; a running one continues. */
  stop(): void;
}

export interface HeartbeatOptions {
  /** Must not reject. */
  readonly beat: () => Promise<void>;
  /** Time from the start of one beat to the start of the next, ms. */
  readonly intervalMs: () => number;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
}

export function createHeartbeat({ beat, intervalMs, clock }: HeartbeatOptions): Heartbeat {
  let next: Timer | undefined;
  /** When the next beat is due, monotonic ms; in the past while one runs. */
  let dueAt = Infinity;
  let soon: Timer | undefined;
  let beating: Promise<void> | undefined;
  let isStopped = false;

  function beatNow(): void {
    next?.cancel();
    const startedAt = clock.monotonic();
    beating ??= beat().finally(() => {
      beating = undefined;
      schedule(startedAt);
    });
  }

  function schedule(startedAt: number): void {
    if (isStopped) return;
    next?.cancel();
    dueAt = startedAt + intervalMs();
    next = clock.timeout(Math.max(0, dueAt - clock.monotonic()), beatNow);
  }

  return {
    beatNow,
    beatSoon: () => {
      soon ??= clock.timeout(GATHER_MS, () => {
        soon = undefined;
        beatNow();
      });
    },
    schedule: () => {
      const now = clock.monotonic();
      if (now + intervalMs() < dueAt) schedule(now);
    },
    idle: async () => await beating,
    stop: () => {
      isStopped = true;
      next?.cancel();
      soon?.cancel();
    },
  };
}

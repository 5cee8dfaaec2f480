/** A callback that waits for its time. */
export interface Timer {
  /** Drops the callback. Without effect after that, and after a timeout has fired. */
  cancel(): void;
  /** Lets the process end although the timer waits. Returns the timer. */
  unref(): Timer;
}

/** Wall clock, monotonic clock and timers: all time that a process sees. Timers run by monotonic time. */
export interface Clock {
  /** Wall time, epoch ms. It can jump forward and back. */
  now(): number;
  /** Monotonic time for durations, ms from an arbitrary origin. */
  monotonic(): number;
  /** Calls back once, `ms` from now. */
  timeout(ms: number, callback: () => void): Timer;
  /** Calls back every `ms`, first `ms` from now. */
  every(ms: number, callback: () => void): Timer;
  /** Resolves `ms` from now. Rejects with the signal's reason when it aborts the wait. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

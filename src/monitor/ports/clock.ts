/** Wall clock and monotonic clock. */
export interface Clock {
  /** Wall time, epoch ms. It can jump forward and back. */
  now(): number;
  /** Monotonic time for durations, ms from an arbitrary origin. */
  monotonic(): number;
}

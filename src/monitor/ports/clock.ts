/** The two clocks of a computer. */
export interface Clock {
  /** Wall time, epoch ms. It can jump either way. */
  now(): number;
  /** Time that only goes forward, ms from any origin; for durations. */
  monotonic(): number;
}

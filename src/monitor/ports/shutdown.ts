/** Signals of a shutdown for requests in flight and their waits (docs/specification.md#stopping). */
export interface Shutdown {
  /** Aborts every wait (for a retry, a slot, the rate) and lets a request in flight end. */
  readonly waits: AbortSignal;
  /** Aborts requests in flight as well. */
  readonly requests: AbortSignal;
}

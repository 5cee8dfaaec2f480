/** Signals that a shutdown sends to requests in flight and to their waits (docs/specification.md#stopping). */
export interface Shutdown {
  /** Aborts every wait (for a retry, a slot, the rate) and lets requests in flight end. */
  readonly waits: AbortSignal;
  /** Aborts requests in flight as well. */
  readonly requests: AbortSignal;
}

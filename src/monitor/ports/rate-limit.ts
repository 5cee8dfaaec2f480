/** Permission to send one request. */
export interface Departure {
  /** Records that the request goes out now. */
  sent(): void;
  /** Gives the permission back; without effect after `sent`. */
  cancelled(): void;
}

/** Limits how often requests go out. */
export interface RateLimit {
  /** Returns the time until one of `waiting` requests may go out, ms; infinite while that depends on something else. */
  delay(waiting: number): number;
  take(): Departure;
  /** Registers a callback for each time that the delay becomes shorter by itself. */
  listen?(wake: () => void): void;
}

/** Permission to send one request. */
export interface SendPermit {
  /** Records that the request goes out now. */
  sent(): void;
  /** Gives the permission back; without effect after `sent`. */
  cancelled(): void;
}

/** Limits how often requests go out. */
export interface RateLimit {
  /**
   * Returns the wait in ms before the first of `waiting` requests may be sent; Infinity while it is not known, such as while
   * another request is reserved but not sent.
   */
  delay(waiting: number): number;
  take(): SendPermit;
  /** Registers a callback that is called when the delay becomes shorter without a call from outside. */
  onShorterDelay?(wake: () => void): void;
}

/** A time limit for an exchange with the service, in which time that evalwatch itself takes does not count. */
export interface Deadline {
  /** Stops the time until the promise, which never rejects, resolves. Returns the promise. */
  without(held: Promise<void>): Promise<void>;
  /** Returns the counted time so far, ms. */
  countedMs(): number;
  clear(): void;
}

/** Creates a deadline that calls `onExpired` after `ms` of counted time. */
export function createDeadline(ms: number, onExpired: () => void): Deadline {
  let left = ms;
  let startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined = setTimeout(onExpired, left);
  let holds = 0;
  let isOver = false;

  async function hold(held: Promise<void>): Promise<void> {
    if (holds === 0) {
      clearTimeout(timer);
      left -= performance.now() - startedAt;
    }
    holds += 1;
    await held;
    holds -= 1;
    if (holds > 0 || isOver) return;
    startedAt = performance.now();
    timer = setTimeout(onExpired, Math.max(0, left));
  }

  return {
    without: hold,
    countedMs: () => ms - left + (holds === 0 ? performance.now() - startedAt : 0),
    clear: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/** A time limit for an exchange with the service, in which time that evalwatch itself takes does not count. */
export interface Deadline {
  /** Stops the time until the promise, which never rejects, resolves. Returns the promise. */
  without(held: Promise<void>): Promise<void>;
  clear(): void;
}

/** Creates a deadline that calls `onExpired` after `ms` of counted time. */
export function createDeadline(ms: number, onExpired: () => void): Deadline {
  let left = ms;
  let startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined = setTimeout(onExpired, left);
  let isOver = false;

  function stop(): void {
    clearTimeout(timer);
    timer = undefined;
    left -= performance.now() - startedAt;
  }

  function start(): void {
    if (isOver) return;
    startedAt = performance.now();
    timer = setTimeout(onExpired, Math.max(0, left));
  }

  return {
    without: (held) => {
      stop();
      return held.then(start);
    },
    clear: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

import { onAbort } from '../concurrency/on-abort.ts';
import type { Clock, Timer } from '../monitor/ports/clock.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timeout: (ms, callback) => toTimer(setTimeout(callback, ms)),
  every: (ms, callback) => toTimer(setInterval(callback, ms)),
  sleep: async (ms, signal) => {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    const stopListening = signal && onAbort(signal, () => reject(signal.reason));
    try {
      await promise;
    } finally {
      stopListening?.();
      clearTimeout(timer);
    }
  },
};

function toTimer(waiting: NodeJS.Timeout): Timer {
  const timer: Timer = {
    cancel: () => clearTimeout(waiting),
    unref: () => {
      waiting.unref();
      return timer;
    },
  };
  return timer;
}

import { MAX_REQUESTS_PER_SECOND } from './configuration.ts';
import type { Course } from './course.ts';
import { MINUTE, SECOND } from './durations.ts';
import type { Kernel } from './kernel.ts';
import type { Machine } from './machine.ts';

/** Checks that no more requests go out than allowed: of a daemon in a second, of all workers in 10 s. */
export interface RequestRate {
  /** Returns the function to call with the address of each request of a process. */
  watch(machine: Machine): (address: string) => void;
  reloading(): void;
  resumed(pausedAt: number): void;
}

export function createRequestRate({ kernel, isShared, fault }: Course): RequestRate {
  const countShared = isShared ? countTooMany(kernel) : undefined;
  let reloadedAt = -Infinity;

  return {
    watch: (machine) => {
      const sentTo = new Map<string, number[]>();
      return (address) => {
        const tooMany = countShared?.();
        if (tooMany !== undefined) fault(`${tooMany} requests of all workers in 10 s`);
        if (isShared) return;
        // A changed service begins with a limit of its own.
        const sent = sentTo.get(address) ?? [];
        sentTo.set(address, sent);
        // By the clock of its process.
        const at = machine.clock.monotonic();
        sent.push(at);
        while ((sent[0] ?? at) <= at - SECOND) sent.shift();
        // Polls from before a reload keep their limit, and the service before the last one may be back.
        const services = kernel.now() < reloadedAt + MINUTE ? 2 : 1;
        if (sent.length > services * MAX_REQUESTS_PER_SECOND) {
          fault(`${sent.length} requests in a second`);
        }
      };
    },
    reloading: () => {
      reloadedAt = kernel.now();
    },
    resumed: (pausedAt) => {
      // Polls from before a reload have waited, too.
      if (pausedAt < reloadedAt + MINUTE) reloadedAt += kernel.now() - pausedAt;
    },
  };
}

/** Returns a function to call at each request of any worker. It returns the number in the last 10 s if that is too high. */
function countTooMany(kernel: Kernel): () => number | undefined {
  const sent: number[] = [];
  return () => {
    const at = kernel.now();
    sent.push(at);
    while ((sent[0] ?? at) <= at - 10 * SECOND) sent.shift();
    return sent.length > 10 * MAX_REQUESTS_PER_SECOND * 1.05 + 1 ? sent.length : undefined;
  };
}

import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { Kernel } from '../kernel.ts';
import type { Machine } from '../machine.ts';
import type { Simulation } from '../parts.ts';
import { MAX_REQUESTS_PER_SECOND, SECOND } from '../scenario.ts';

/** Time after a fault of a process or its statements within which another one may repeat its work, ms, plus a lease. */
const TROUBLE_MS = 30_000;
/** How much slower than true time a worker's clock may be during a lease, and the time for which it may be off, ms. */
const CLOCK_TOLERANCE_MS = 10;
/** Checks that a failure is told by a worker with a lease, and by one worker, unless there was trouble. */
export function createWatch({ course }: Pick<Simulation, 'course'>) {
  const { kernel, isShared, leaseMs, fault } = course;
  const troubledAt = new Map<string, number>();
  let failedOverAt = -Infinity;
  const renewedAt = new Map<string, number>();
  const tellers = new Map<number, { readonly process: string; readonly at: number }[]>();

  function hasTroubleSince(process: string, at: number): boolean {
    return Math.max(troubledAt.get(process) ?? -Infinity, failedOverAt) >= at;
  }

  function told(process: string, transitionId: number): void {
    const now = kernel.now();
    const until = (renewedAt.get(process) ?? -Infinity) + leaseMs + CLOCK_TOLERANCE_MS;
    if (now > until) fault(`failure ${transitionId} was told by ${process}, which has no lease`);
    const before = tellers.get(transitionId) ?? [];
    const troubleMs = TROUBLE_MS + leaseMs;
    for (const other of before) {
      const isExcused =
        other.process === process ||
        hasTroubleSince(process, now - troubleMs) ||
        hasTroubleSince(other.process, other.at - troubleMs);
      if (!isExcused) fault(`failure ${transitionId} was told by ${other.process} and ${process}`);
    }
    tellers.set(transitionId, [...before, { process, at: now }]);
  }

  return {
    observe: (process: string, event: MonitorEvent) => {
      if (event.type === 'prompt.failed' && isShared) told(process, event.transitionId);
      else if (event.type === 'store.commit_failed' || event.type === 'worker.lease_lost') {
        troubledAt.set(process, kernel.now());
      }
    },
    /** Records a fault of this process, of its statements, or of their answers. */
    troubled: (process: string) => {
      troubledAt.set(process, kernel.now());
    },
    hasTroubleSince,
    /** Records that its lease begins or is renewed in the database. */
    renewed: (process: string) => {
      renewedAt.set(process, kernel.now());
    },
    /** Records that it has ended its lease. */
    left: (process: string) => {
      renewedAt.delete(process);
    },
    /** Records a failover. The database lost its last commits: failures are pending again. */
    failedOver: () => {
      failedOverAt = kernel.now();
      tellers.clear();
    },
  };
}

/** Checks that no more requests go out than allowed: of a daemon in a second, of all workers in 10 s. */
export function createRequestRate({ course }: Pick<Simulation, 'course'>) {
  const { kernel, isShared, fault } = course;
  const countShared = isShared ? countTooMany(kernel) : undefined;

  return {
    /** Returns the function to call at each request of a process. */
    watch: ({ clock }: Machine) => {
      const sent: number[] = [];
      return () => {
        const tooMany = countShared?.();
        if (tooMany !== undefined) fault(`${tooMany} requests of all workers in 10 s`);
        if (isShared) return;
        // By the clock of its process.
        const at = clock.monotonic();
        sent.push(at);
        while ((sent[0] ?? at) <= at - SECOND) sent.shift();
        if (sent.length > MAX_REQUESTS_PER_SECOND) fault(`${sent.length} requests in a second`);
      };
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

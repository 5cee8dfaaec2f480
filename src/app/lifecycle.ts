import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { Shutdown } from '../monitor/ports/service.ts';

export interface ShutdownControl extends Shutdown {
  /** Cancels every wait now, and requests in flight once `graceMs` are over. */
  begin(graceMs: number): void;
  /** Cancels the deadline: everything has ended. */
  end(): void;
}

export function createShutdown(clock: Clock): ShutdownControl {
  const waits = new AbortController();
  const requests = new AbortController();
  let deadline: Timer | undefined;
  return {
    waits: waits.signal,
    requests: requests.signal,
    begin: (graceMs) => {
      waits.abort(new Error('evalwatch is stopping'));
      deadline = clock.timeout(graceMs, () => {
        requests.abort(new Error('evalwatch is stopping and the grace period is over'));
      });
    },
    end: () => deadline?.cancel(),
  };
}

/** Ends the process because of a bug; a supervisor then restarts it (docs/design-decisions.md). */
export function endProcess(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

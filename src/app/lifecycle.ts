import type { Shutdown } from '../monitor/ports/shutdown.ts';

export interface ShutdownControl extends Shutdown {
  /** Cancels every wait now, and requests in flight once `graceMs` are over. */
  begin(graceMs: number): void;
  /** Everything has ended: no deadline is needed any more. */
  end(): void;
}

export function createShutdown(): ShutdownControl {
  const waits = new AbortController();
  const requests = new AbortController();
  let deadline: NodeJS.Timeout | undefined;
  return {
    waits: waits.signal,
    requests: requests.signal,
    begin: (graceMs) => {
      waits.abort(new Error('evalwatch is stopping'));
      deadline = setTimeout(() => {
        requests.abort(new Error('evalwatch is stopping and waited long enough'));
      }, graceMs);
    },
    end: () => clearTimeout(deadline),
  };
}

/** A bug: a supervisor restarts a monitor that does not understand itself (docs/design-decisions.md). */
export function endProcess(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

import { readFileSync } from 'node:fs';
import type { Clock, Timer } from '../monitor/ports/clock.ts';
import type { Shutdown } from '../monitor/ports/service.ts';

/** The version in package.json, which lies beside both src/ and dist/. */
export const version = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const manifest: { readonly version: string } = JSON.parse(text);
  return manifest.version;
}

/** The shutdown of a process, which has not begun yet. */
export class ProcessShutdown implements Shutdown {
  readonly #clock: Clock;
  readonly #waits = new AbortController();
  readonly #requests = new AbortController();
  #deadline: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get waits(): AbortSignal {
    return this.#waits.signal;
  }

  get requests(): AbortSignal {
    return this.#requests.signal;
  }

  /** Cancels every wait now, and requests in flight once `graceMs` are over. */
  begin(graceMs: number): void {
    this.#waits.abort(new Error('evalwatch is stopping'));
    this.#deadline = this.#clock.timeout(graceMs, () => {
      this.#requests.abort(new Error('evalwatch is stopping and the grace period is over'));
    });
  }

  /** Cancels the deadline: everything has ended. */
  end(): void {
    this.#deadline?.cancel();
  }
}

/** Ends the process because of a bug; a supervisor then restarts it (docs/design-decisions.md). */
export function endProcess(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

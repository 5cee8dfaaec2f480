import type { Clock } from '../monitor/ports/clock.ts';
import type { Coordinator } from './ports.ts';
import { MAX_RELEASE } from './releases.ts';
import { withTimeout } from './timeout.ts';

/** Projects of lost leases. The database may still record them as owned by this worker. */
export interface LostProjects {
  add(projects: readonly string[]): void;
  /**
   * Releases most of them: a new lease releases the rest in one statement, which must not take long.
   * @throws {StoreError} if the database needs too long; the next call goes on
   */
  release(): Promise<void>;
  /** A new lease has released the rest. */
  clear(): void;
}

export interface LostProjectsOptions {
  readonly worker: string;
  readonly coordinator: Pick<Coordinator, 'release'>;
  readonly clock: Pick<Clock, 'monotonic' | 'timeout'>;
  /** Maximum time of a call of `release`, ms. */
  readonly timeoutMs: number;
}

export function createLostProjects(options: LostProjectsOptions): LostProjects {
  const { worker, coordinator, clock, timeoutMs } = options;
  let lost: readonly string[] = [];
  return {
    add: (projects) => {
      lost = [...lost, ...projects];
    },
    release: async () => {
      const endsAt = clock.monotonic() + timeoutMs;
      while (lost.length > MAX_RELEASE) {
        const released = coordinator.release(worker, lost.slice(0, MAX_RELEASE));
        await withTimeout(released, endsAt - clock.monotonic(), clock);
        lost = lost.slice(MAX_RELEASE);
      }
    },
    clear: () => {
      lost = [];
    },
  };
}

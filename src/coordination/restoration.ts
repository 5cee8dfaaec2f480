import type { Clock } from '../monitor/ports/clock.ts';
import type { Observer } from '../monitor/events.ts';
import type { Beat } from './ports.ts';

export interface RestorationOptions {
  /** Name of this worker. */
  readonly id: string;
  /** Time for which the database must have had other projects, ms: whoever configured them shows its digest by then. */
  readonly leaseMs: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** @throws {StoreError} */
  readonly restoreProjects: () => Promise<void>;
  /** Receives `worker.projects_restored`. */
  readonly emit: Observer;
  /** Receives errors of `restoreProjects`, which runs in the background. */
  readonly onFailure: (error: unknown) => void;
}

/** Configures projects again that the database has lost (docs/specification.md#lost-configurations). */
export interface Restoration {
  /** Takes the result of each beat, and the digest of this worker's configuration. */
  check(beat: Pick<Beat, 'workers' | 'isConfigured'>, digest: string): void;
  /** Resolves when no projects are being configured any more. */
  idle(): Promise<void>;
}

export function createRestoration(options: RestorationOptions): Restoration {
  const { id, leaseMs, clock, restoreProjects, emit, onFailure } = options;
  let since: number | undefined;
  let restoring: Promise<void> | undefined;

  async function run(): Promise<void> {
    await restoreProjects();
    emit({ type: 'worker.projects_restored', worker: id });
  }

  return {
    check: ({ workers, isConfigured }, digest) => {
      const isAgreed = digest !== '' && workers.every((one) => one.configDigest === digest);
      if (isConfigured || !isAgreed) {
        since = undefined;
        return;
      }
      since ??= clock.monotonic();
      if (clock.monotonic() - since < leaseMs) return;
      restoring ??= run()
        .catch(onFailure)
        .finally(() => {
          restoring = undefined;
        });
    },
    idle: async () => await restoring,
  };
}

import { StoreError } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Beat } from './ports.ts';
import { projectsDigestOf } from './projects-digest.ts';

export interface RestorationOptions {
  /** Name of this worker. */
  readonly id: string;
  readonly leaseMs: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Same as `WorkerOptions.restoreProjects`. */
  readonly restoreProjects: (projects: readonly string[], newest: number) => Promise<boolean>;
  /** Receives `worker.projects_restored`. */
  readonly emit: Observer;
  readonly onRestored: () => void;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/** Configures projects again that the database has lost (docs/specification.md#lost-configurations). */
export interface Restoration {
  /** Sets the projects of this worker. */
  configure(projects: readonly string[]): void;
  /** Takes the result of each beat, and the digest of this worker's configuration. */
  check(beat: Pick<Beat, 'workers' | 'configured'>, configDigest: string): void;
}

/**
 * Creates the restoration of one worker. It waits for a lease, because a worker that has just been reloaded configures its
 * projects before it shows its new configuration.
 */
export function createRestoration(options: RestorationOptions): Restoration {
  const { id, leaseMs, clock, restoreProjects, emit, onRestored, onError } = options;
  let projects: readonly string[] = [];
  let ownDigest = '';
  /** A change that configured other projects, and since when that has been seen while all workers agree. */
  let other: { readonly epoch: number; readonly since: number } | undefined;
  let isRestoring = false;
  let checkedAt = -Infinity;

  async function restore(newest: number): Promise<void> {
    isRestoring = true;
    try {
      const { length } = projects;
      if (!(await restoreProjects(projects, newest))) return;
      emit({ type: 'worker.projects_restored', worker: id, projects: length });
      onRestored();
    } catch (error) {
      // The store has emitted its own failures, and a later beat tries again.
      if (!(error instanceof StoreError)) onError(error);
    } finally {
      isRestoring = false;
    }
  }

  return {
    configure: (next) => {
      projects = next;
      ownDigest = projectsDigestOf(next);
      other = undefined;
    },
    check: ({ workers, configured }, configDigest) => {
      const before = checkedAt;
      checkedAt = clock.monotonic();
      // A worker without a digest, such as one that stops, does not show what its configuration is.
      const isAgreed =
        configDigest !== '' && workers.every((worker) => worker.configDigest === configDigest);
      if (!isAgreed || configured.digest === ownDigest) {
        other = undefined;
        return;
      }
      // After a lost lease, it waits anew.
      if (other?.epoch !== configured.epoch || checkedAt - before >= leaseMs) {
        other = { epoch: configured.epoch, since: checkedAt };
      }
      if (isRestoring || checkedAt - other.since < leaseMs) return;
      other = undefined;
      void restore(configured.epoch);
    },
  };
}

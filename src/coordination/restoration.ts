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
  /** As in `WorkerOptions`. */
  readonly restoreProjects: (projects: readonly string[], storedDigest: string) => Promise<boolean>;
  /** Receives `worker.projects_restored`. */
  readonly emit: Observer;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/** Configures projects again that the database has lost (docs/specification.md#lost-configurations). */
export interface Restoration {
  /** Sets the projects of this worker. */
  configure(projects: readonly string[]): void;
  /** Takes the result of each beat, and the digest of this worker's configuration. */
  check(beat: Pick<Beat, 'workers' | 'projectsDigest'>, configDigest: string): void;
}

/**
 * Creates the restoration of one worker. It waits for a lease, because a worker that has just been reloaded configures its
 * projects before it shows its new configuration.
 */
export function createRestoration(options: RestorationOptions): Restoration {
  const { id, leaseMs, clock, restoreProjects, emit, onError } = options;
  let projects: readonly string[] = [];
  let ownDigest = '';
  /** The stored digest, and since when it has differed. */
  let other: { readonly digest: string; readonly since: number } | undefined;
  let isRestoring = false;
  let checkedAt = -Infinity;

  async function restore(storedDigest: string): Promise<void> {
    isRestoring = true;
    try {
      const isDone = await restoreProjects(projects, storedDigest);
      if (isDone) emit({ type: 'worker.projects_restored', worker: id, projects: projects.length });
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
    check: ({ workers, projectsDigest }, configDigest) => {
      const digests = new Set(workers.map((worker) => worker.configDigest)).add(configDigest);
      // Workers without a digest, such as one that stops, show nothing: they only postpone it.
      const isPostponed = digests.delete('');
      const before = checkedAt;
      checkedAt = clock.monotonic();
      if (digests.size > 1 || configDigest === '' || projectsDigest === ownDigest) {
        other = undefined;
        return;
      }
      // After a lost lease, it waits anew.
      if (other?.digest !== projectsDigest || checkedAt - before >= leaseMs) {
        other = { digest: projectsDigest, since: checkedAt };
      }
      if (isPostponed || isRestoring || checkedAt - other.since < leaseMs) return;
      other = undefined;
      void restore(projectsDigest);
    },
  };
}

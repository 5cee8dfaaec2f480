import { StoreError } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Beat } from './ports.ts';

/** Time that a rollout may take before a difference is logged, ms. */
const ROLLOUT_MS = 5 * 60_000;

export interface ConfigurationOptions {
  /** Name of this worker. */
  readonly id: string;
  readonly leaseMs: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Receives `worker.config_differs` and `worker.projects_restored`. */
  readonly emit: Observer;
  /** Same as `WorkerOptions.restoreProjects`. */
  readonly restoreProjects: (projects: readonly string[]) => Promise<boolean>;
  readonly onRestored: () => void;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/** Compares the configuration of this worker with those of the others, and with the configured projects of the database. */
export class SharedConfiguration {
  readonly #options: ConfigurationOptions;
  #differsSince: number | undefined;
  #isReported = false;
  /** Since when the database has had other projects than all workers, and as of which beat. */
  #lost: { readonly since: number; readonly seen: number } | undefined;
  #isRestoring = false;

  constructor(options: ConfigurationOptions) {
    this.#options = options;
  }

  /**
   * Takes the result of each beat, and the configuration of this worker: digest, and projects with theirs. Ignores workers
   * with an empty digest, which do not show what their configuration is.
   */
  check(
    { workers, configured }: Pick<Beat, 'workers' | 'configured'>,
    own: {
      readonly digest: string;
      readonly projects: readonly string[];
      readonly configured: string;
    },
  ): void {
    const { id, clock, leaseMs } = this.#options;
    const now = clock.monotonic();
    const others = workers
      .filter(({ configDigest }) => configDigest !== own.digest && configDigest !== '')
      .filter((worker) => worker.id !== id);
    this.#report(own.digest === '' ? [] : others.map((worker) => worker.id), now);
    // A worker that has just been reloaded configures its projects before it shows its new configuration.
    const isAgreed = own.digest !== '' && workers.every((one) => one.configDigest === own.digest);
    if (!isAgreed || configured === own.configured) {
      this.#lost = undefined;
      return;
    }
    // After a lost lease, it waits anew.
    const isFollowing = this.#lost !== undefined && now - this.#lost.seen < leaseMs;
    this.#lost = { since: (isFollowing ? this.#lost?.since : undefined) ?? now, seen: now };
    if (this.#isRestoring || now - this.#lost.since < leaseMs) return;
    this.#lost = undefined;
    // Not waited for: a change of many projects takes longer than a beat may.
    void this.#restore(own.projects);
  }

  /** Reports workers whose configuration has differed for longer than a rollout takes; again only after all have agreed. */
  #report(others: readonly string[], now: number): void {
    const { id, emit } = this.#options;
    if (others.length === 0) {
      this.#differsSince = undefined;
      this.#isReported = false;
      return;
    }
    this.#differsSince ??= now;
    if (this.#isReported || now - this.#differsSince < ROLLOUT_MS) return;
    this.#isReported = true;
    emit({ type: 'worker.config_differs', worker: id, others });
  }

  async #restore(projects: readonly string[]): Promise<void> {
    const { id, emit, restoreProjects, onRestored, onError } = this.#options;
    this.#isRestoring = true;
    try {
      if (!(await restoreProjects(projects))) return;
      emit({ type: 'worker.projects_restored', worker: id, projects: projects.length });
      onRestored();
    } catch (error) {
      // The store has emitted its own failures, and a later beat tries again.
      if (!(error instanceof StoreError)) onError(error);
    } finally {
      this.#isRestoring = false;
    }
  }
}

import { isPassing, StoreError, type StoreFailureReason } from '../monitor/errors.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { watchAgreement } from './agreement.ts';
import { createHeartbeat } from './heartbeat.ts';
import { createLease } from './lease.ts';
import { createLostProjects } from './lost-projects.ts';
import type { Coordinator, Ownership } from './ports.ts';
import { createRestoration } from './restoration.ts';
import { createShare, NO_CHANGE, type OwnershipChange } from './share.ts';
import { withTimeout } from './timeout.ts';

/** Number of renewals while a lease lasts. */
const BEATS_PER_LEASE = 4;
/** Maximum interval of beats while the database does not answer, ms. */
const MAX_RETRY_MS = 1000;
/** Maximum wait for an answer of the database, ms; half a lease, if that is less. */
const TIMEOUT_MS = 5000;

/** One of several equal workers that share projects (docs/specification.md#ownership). */
export interface Worker {
  /** Sets the projects that this worker may own; others that it owns are given back. */
  configure(projects: readonly string[]): void;
  /**
   * Takes the first lease and the first projects. If the database does not answer, calls `onWaiting`, if it is given, and
   * goes on trying as after any other beat that fails; calls it again when there is another reason.
   * @throws {StoreError} without `onWaiting`, or if the database refuses
   */
  start(onWaiting?: (error: StoreError) => void): Promise<void>;
  /**
   * Gives every project back once no poll of it runs, and ends the lease once `work` has ended too; until then the lease
   * is renewed. Rejects only if `work` does.
   */
  stop(work?: Promise<void>): Promise<void>;
  /** Whether this worker owns the project and its lease holds; it may be giving the project back. */
  owns(project: string): boolean;
  /** Whether this worker owns the project and keeps it, its lease holds, and the database answers. */
  mayPoll(project: string): boolean;
  /** Drops a project whose commit was refused, because another worker owns it. */
  drop(project: string): void;
  /** Whether the lease holds and the database answers. */
  isConnected(): boolean;
  /** Number of the lease that holds, which no other lease of this worker has; undefined if none holds. */
  lease(): number | undefined;
  /** Number of workers whose lease holds, including this one. */
  liveWorkers(): number;
  /** End of its newest lease, epoch ms; undefined before the first lease. */
  leaseExpiresAt(): number | undefined;
}

export interface WorkerOptions {
  /** Name of this worker, unique across restarts. */
  readonly id: string;
  readonly version: string;
  /** Digest of the configuration; empty for a worker that takes no share and need not agree with the others. */
  readonly configDigest: () => string;
  readonly leaseMs: number;
  readonly coordinator: Omit<Coordinator, 'grant' | 'owner'>;
  readonly ownership: Pick<Ownership, 'own' | 'epoch' | 'disown' | 'flush'>;
  /**
   * Configures these projects in the database again, if the change with the number `newest` is still the newest one, and no
   * reload is under way. Returns whether it did. @throws {StoreError}
   */
  readonly restoreProjects: (projects: readonly string[], newest: number) => Promise<boolean>;
  readonly clock: Omit<Clock, 'now'>;
  /**
   * Receives `worker.claimed`, `worker.released`, `worker.lease_lost`, `worker.config_differs` and
   * `worker.projects_restored`.
   */
  readonly emit: Observer;
  /** Called whenever the set of projects that may be polled changes. */
  readonly onChange: (change: OwnershipChange) => void;
  /** Returns a promise that settles when no poll of the project runs any more; undefined if none runs. */
  readonly runningPoll: (project: string) => Promise<unknown> | undefined;
  /** Receives every error that is not a StoreError: a bug. */
  readonly onError: (error: unknown) => void;
}

/**
 * Creates a worker that holds a lease and, while it holds, owns projects up to its share. After a lost lease the worker
 * owns nothing, and ignores answers to earlier requests.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { id, version, leaseMs, coordinator, clock, emit, onChange } = options;
  const beatMs = leaseMs / BEATS_PER_LEASE;
  const timeoutMs = Math.min(TIMEOUT_MS, leaseMs / 2);
  let state: 'new' | 'starting' | 'running' | 'stopping' = 'new';
  let isAnswered = false;
  let liveWorkers = 1;
  const lost = createLostProjects({ worker: id, coordinator, clock, timeoutMs });
  /** Receives failures before the first lease. */
  let onWaiting: ((error: StoreError) => void) | undefined;
  let waitsFor: StoreFailureReason | undefined;
  /** While this worker stops, its digest is empty, so that others leave it no share. */
  const ownDigest = () => (state === 'stopping' ? '' : options.configDigest());
  const identity = () => ({ id, version, configDigest: ownDigest() });

  const lease = createLease({ coordinator, identity, clock, timeoutMs, onLost, lost });
  const share = createShare({
    ...options,
    worker: id,
    term: () => lease.term(),
    timeoutMs,
    onFailure,
  });
  const intervalMs = () => (isAnswered ? beatMs : Math.min(beatMs, MAX_RETRY_MS));
  const heartbeat = createHeartbeat({ beat: () => beat().catch(onFailure), intervalMs, clock });
  const compareConfigurations = watchAgreement({ id, clock, emit });
  const restoration = createRestoration({ ...options, onRestored: () => heartbeat.beatSoon() });

  function onLost(): void {
    const dropped = share.dropAll();
    lost.add(dropped);
    emit({ type: 'worker.lease_lost', worker: id, projects: dropped.length, owned: 0 });
    onChange({ taken: [], dropped });
  }

  async function beat(): Promise<void> {
    const answer = await lease.renew();
    if (answer === undefined) return;
    lost.clear();
    const { workers, owned, hasFree } = answer;
    const digest = ownDigest();
    liveWorkers = workers.length;
    setAnswered(true);
    compareConfigurations(workers, digest);
    restoration.check(answer, digest);
    const hasReleased = await share.agree(owned);
    if (state === 'stopping') return;
    const sharing = workers.filter((one) => one.id === id || one.configDigest === digest);
    await share.balance(sharing.length, hasFree || hasReleased);
  }

  function setAnswered(next: boolean): void {
    if (isAnswered === next) return;
    isAnswered = next;
    onChange(NO_CHANGE);
  }

  /** Handles a failed beat, release or leave. The store logs its own failures; any other error is a bug. */
  function onFailure(error: unknown): void {
    if (!(error instanceof StoreError)) return options.onError(error);
    setAnswered(false);
    if (lease.expiresAt() === undefined && error.reason !== waitsFor) onWaiting?.(error);
    waitsFor = error.reason;
    // Drops an expired lease now: its timer may fire late.
    lease.isHeld();
    // A release can fail between beats. The next one could come a quarter of a lease later, and nothing is polled until then.
    if (state !== 'starting') heartbeat.schedule();
  }

  return {
    configure: (projects) => {
      share.configure(projects);
      restoration.configure(projects);
      if (state === 'running') heartbeat.beatNow();
    },
    start: async (listener) => {
      state = 'starting';
      try {
        await beat();
      } catch (error) {
        if (!listener || !(error instanceof StoreError) || !isPassing(error)) {
          lease.close();
          throw error;
        }
        onWaiting = listener;
        onFailure(error);
      }
      if (state === 'starting') state = 'running';
      heartbeat.schedule();
    },
    stop: async (work) => {
      state = 'stopping';
      await heartbeat.idle();
      if (isAnswered) {
        share.releaseAll();
        // Announces that this worker takes no share any more: others claim its projects only then.
        heartbeat.beatNow();
      }
      await Promise.all([share.released(), work]);
      heartbeat.stop();
      lease.close();
      // A running beat may begin another lease.
      await heartbeat.idle();
      // A lease that cannot be ended expires.
      if (isAnswered) await withTimeout(coordinator.leave(id), timeoutMs, clock).catch(onFailure);
    },
    owns: (project) => lease.isHeld() && share.has(project),
    mayPoll: (project) => share.owns(project) && isAnswered && lease.isHeld(),
    drop: (project) => {
      if (share.drop(project) && state === 'running') heartbeat.beatSoon();
    },
    isConnected: () => isAnswered && lease.isHeld(),
    lease: () => (lease.isHeld() ? lease.term() : undefined),
    liveWorkers: () => liveWorkers,
    leaseExpiresAt: () => lease.expiresAt(),
  };
}

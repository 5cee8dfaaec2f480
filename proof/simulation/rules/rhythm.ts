import type { Simulation } from '../parts.ts';
import { JITTER_MS, type Project, SECOND } from '../scenario.ts';

const CHECKED_EVERY_MS = 20 * SECOND;

/** Checks that each project is polled as often as its schedule says. */
export function createRhythm(simulation: Simulation) {
  const { course, hosts, patienceMs, conditions, partitions } = simulation;
  const { deadLeases, wallClocks, rollouts } = simulation;
  const { kernel, isShared, fault, bug } = course;
  /** Virtual time of the last start of each project. */
  const lastStarts = new Map<string, number>();
  /** Polls that have started and not ended, by process and project. */
  const running = new Set<string>();

  /** Returns since when nothing can have delayed a poll; Infinity while something does. */
  function undisturbedSince(): number {
    // Other workers take over the projects of a worker that is down or cut off.
    const lived = hosts.flatMap((host) =>
      host.life && !partitions.isCutOff(host) ? [host.life.steadySince ?? Infinity] : [],
    );
    if (!isShared || lived.length === 0) return lived[0] ?? Infinity;
    return Math.max(course.disturbedAt(), deadLeases.heldAt(), ...lived);
  }

  function checkProject({ id, periodMs }: Project, since: number): void {
    const lastAt = lastStarts.get(id) ?? -Infinity;
    // The tick of the last start was up to `patienceMs` earlier.
    const setBackMs = wallClocks.setBackSince(lastAt - patienceMs, periodMs);
    const ms = kernel.now() - Math.max(lastAt, since);
    if (ms <= periodMs + setBackMs + JITTER_MS + patienceMs) return;
    unlessRemoved(id, `${id} is not polled for ${Math.round(ms / SECOND)} s`);
  }

  /**
   * Records a fault, except for a project that is not configured in the store. A worker that is down may have started with
   * an earlier configuration and removed it, or a failover may have lost the reload that added it. The workers configure it
   * again once all that run have the same configuration.
   */
  function unlessRemoved(project: string, text: string): void {
    const isKept = hosts.every(({ life }) => life !== undefined) && !rollouts.mayLackChanges();
    if (isKept || rollouts.isAgreed()) fault(text);
    else void rollouts.stored().then((ids) => ids.includes(project) && fault(text), bug);
  }

  /** Looks again and again for projects that are due and not polled. */
  function check(): void {
    kernel.after(CHECKED_EVERY_MS, check);
    const since = undisturbedSince();
    if (!Number.isFinite(since) || !conditions.isStoreUsual()) return;
    for (const project of course.projects) {
      if (rollouts.isWatched(project.id)) checkProject(project, since);
    }
  }

  return {
    started: (process: string, project: string) => {
      running.add(`${process} ${project}`);
      lastStarts.set(project, kernel.now());
    },
    /** Called when a poll of a project ends. Without a start, it sent no request: the service had asked for a pause. */
    ended: (process: string, project: string) => {
      if (!running.delete(`${process} ${project}`)) lastStarts.set(project, kernel.now());
    },
    check,
  };
}

/**
 * Tracks the leases of workers that have ended, or are cut off from the database. Their projects rest, and so do those that
 * the others leave to them as their share.
 */
export function createDeadLeases({ course, hosts, partitions }: Simulation) {
  const { kernel, leaseMs } = course;
  /** When the lease of each worker ends, in virtual time. */
  const ends = new Map<string, number>();
  /** A failover can bring back a lease that was ended. */
  let broughtBackUntil = -Infinity;

  return {
    /** Records that the database has renewed the lease of a worker, perhaps after its end. */
    renewed: (worker: string) => {
      ends.set(worker, kernel.now() + leaseMs);
    },
    left: (worker: string) => {
      ends.delete(worker);
    },
    failedOver: () => {
      broughtBackUntil = kernel.now() + leaseMs;
    },
    /** Returns when such a lease last held. */
    heldAt: () => {
      const connected = new Set(
        hosts.flatMap((host) => (partitions.isCutOff(host) ? [] : [host.life?.machine.name])),
      );
      const dead = [...ends].filter(([worker]) => !connected.has(worker)).map(([, end]) => end);
      return Math.min(kernel.now(), Math.max(broughtBackUntil, ...dead));
    },
  };
}

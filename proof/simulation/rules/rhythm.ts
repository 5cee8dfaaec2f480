import { type Machine, START } from '../machine.ts';
import type { Simulation } from '../parts.ts';
import { JITTER_MS, type Project, SECOND } from '../scenario.ts';

const CHECKED_EVERY_MS = 20 * SECOND;

/** The start of a poll. */
interface Start {
  /** Virtual time. */
  readonly at: number;
  /** By the clock of its process. */
  readonly wall: number;
  /** The same, for the start before. */
  readonly before: number;
  /** Latest `wall` of all starts. */
  readonly latest: number;
}

const NEVER: Start = { at: -Infinity, wall: -Infinity, before: -Infinity, latest: -Infinity };

/** Checks that each project is polled as often as its schedule says. */
export function createRhythm(simulation: Simulation) {
  const { course, hosts, patienceMs, conditions, partitions } = simulation;
  const { deadLeases, wallClocks, rollouts } = simulation;
  const { kernel, isShared, fault, bug } = course;
  const lastStarts = new Map<string, Start>();
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
    const now = kernel.now();
    const last = lastStarts.get(id) ?? NEVER;
    // The tick of the last start was up to `patienceMs` earlier.
    const setBackMs = wallClocks.setBackSince(last.at - patienceMs, periodMs);
    const [host] = hosts;
    const startedAt = host?.life?.startedAt ?? Infinity;
    const wall = START + (host?.wallOffset ?? 0) + now - patienceMs;
    // The last run that was due by the clock of the machine.
    const dueAt = Math.floor((wall - JITTER_MS) / periodMs) * periodMs;
    // A kill can have lost the outcome of the last poll.
    const isForgotten =
      Math.max(last.wall, last.before) + setBackMs < dueAt &&
      // A process that starts after its clock was set back may skip this run, because a stored poll is later than it.
      (last.latest < dueAt || last.at > startedAt) &&
      last.at < since &&
      now > since + patienceMs;
    if (isForgotten && !isShared) {
      fault(`${id} was due ${Math.round((wall - dueAt) / SECOND)} s ago and is not polled`);
    } else if (now - Math.max(last.at, since) > periodMs + setBackMs + JITTER_MS + patienceMs) {
      unlessRemoved(id, `${id} is not polled for ${Math.round((now - last.at) / SECOND)} s`);
    }
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

  function countStart(project: string, wall: number): void {
    const { wall: before, latest } = lastStarts.get(project) ?? NEVER;
    const start = { at: kernel.now(), wall, before, latest: Math.max(latest, wall) };
    lastStarts.set(project, start);
  }

  return {
    started: (project: string, { name, clock }: Machine) => {
      running.add(`${name} ${project}`);
      countStart(project, clock.now());
    },
    /** Called when a poll of a project ends. Without a start, it sent no request: the service had asked for a pause. */
    ended: (project: string, { name, clock }: Machine) => {
      if (!running.delete(`${name} ${project}`)) countStart(project, clock.now());
    },
    /** Called when a run comes due while a poll runs. */
    overlapped: (project: string, { clock }: Machine) => {
      // The run counts as started.
      const last = lastStarts.get(project) ?? NEVER;
      lastStarts.set(project, { ...last, wall: clock.now() });
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

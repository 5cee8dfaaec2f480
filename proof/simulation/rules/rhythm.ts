import type { ReadLease } from '../backend.ts';
import { type Machine, START } from '../machine.ts';
import type { Simulation } from '../parts.ts';
import { JITTER_MS, MINUTE, type Project, SECOND } from '../scenario.ts';

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

/** Maximum time that a lease can have left, ms. */
const MAX_REMAINING_MS = 10 * MINUTE;
/** Time within which every living worker renews a lease that seems to have more left, ms. */
const RENEWED_WITHIN_MS = 150 * SECOND;

/**
 * Tracks the leases of workers that have ended, or are cut off from the database. Their projects rest, and so do those that
 * the others leave to them as their share. A worker that has read such a lease deletes it when its time is over, whatever
 * the database's clock does. A lease that a standby brings back, or that is read late, holds until it ends by that clock.
 */
export function createDeadLeases({ course, hosts, partitions }: Simulation) {
  const { kernel } = course;
  /** Leases as last read, by reader and worker. `until` is when their time is over, in virtual time. */
  const known = new Map<string, ReadonlyMap<string, { readonly expires: number; until: number }>>();
  let heldAt = -Infinity;

  function note(reader: string, leases: readonly ReadLease[]): void {
    const now = kernel.now();
    const before = known.get(reader);
    const after = new Map<string, { readonly expires: number; until: number }>();
    for (const { worker, expires_us: expires, remaining_ms: remaining } of leases) {
      const same = before?.get(worker);
      const until = now + (remaining <= MAX_REMAINING_MS ? remaining : RENEWED_WITHIN_MS);
      const earlier = same?.expires === expires ? same.until : Infinity;
      after.set(worker, { expires, until: Math.min(until, earlier) });
    }
    known.set(reader, after);
  }

  /** Whether no process that can delete the lease is overdue to do so. */
  function mayHold({ worker, expires_us }: ReadLease): boolean {
    return hosts.every((host) => {
      const { life } = host;
      if (life?.steadySince === undefined || life.machine.isPaused()) return true;
      if (partitions.isCutOff(host)) return true;
      const lease = known.get(life.machine.name)?.get(worker);
      return lease?.expires !== expires_us || lease.until >= kernel.now();
    });
  }

  return {
    /** Records the leases of all workers, as a process has read them. */
    read: (reader: string, leases: readonly ReadLease[]) => {
      note(reader, leases);
      const running = new Set(hosts.map(({ life }) => life?.machine.name));
      for (const name of known.keys()) if (!running.has(name)) known.delete(name);
      const connected = new Set(
        hosts.flatMap((host) => (partitions.isCutOff(host) ? [] : [host.life?.machine.name])),
      );
      const isHeld = leases.some(
        (lease) => lease.holds && !connected.has(lease.worker) && mayHold(lease),
      );
      if (isHeld) heldAt = kernel.now();
    },
    /** Returns when a process last read such a lease that holds and that no process is overdue to delete. */
    heldAt: () => heldAt,
  };
}

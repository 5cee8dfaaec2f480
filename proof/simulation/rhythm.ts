import { JITTER_MS, type Project } from './configuration.ts';
import type { Course } from './course.ts';
import type { DeadLeases } from './dead-leases.ts';
import { SECOND } from './durations.ts';
import type { Conditions } from './faults/conditions.ts';
import type { Partitions } from './faults/partitions.ts';
import type { WallClocks } from './faults/wall-clocks.ts';
import type { Host } from './hosts.ts';
import { type Machine, START } from './machine.ts';
import type { Rollouts } from './rollouts.ts';

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
export interface Rhythm {
  started(project: string, machine: Machine): void;
  /** Called when a poll of a project ends. Without a start, it sent no request: the service had asked for a pause. */
  ended(project: string, machine: Machine): void;
  /** Called when a run comes due while a poll runs. */
  overlapped(project: string, machine: Machine): void;
  /** Looks again and again for projects that are due and not polled. */
  check(): void;
}

export interface RhythmOptions {
  readonly course: Course;
  readonly hosts: readonly Host[];
  /** Time within which a poll that is due has to begin, ms. */
  readonly patienceMs: number;
  readonly conditions: Pick<Conditions, 'isStoreUsual'>;
  readonly partitions: Pick<Partitions, 'isCutOff'>;
  readonly deadLeases: Pick<DeadLeases, 'heldAt'>;
  readonly wallClocks: Pick<WallClocks, 'setBackSince'>;
  readonly rollouts: Pick<Rollouts, 'isAgreed' | 'isWatched' | 'mayLackChanges' | 'stored'>;
}

export function createRhythm(options: RhythmOptions): Rhythm {
  const { course, hosts, patienceMs, conditions, partitions } = options;
  const { deadLeases, wallClocks, rollouts } = options;
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
    started: (project, { name, clock }) => {
      running.add(`${name} ${project}`);
      countStart(project, clock.now());
    },
    ended: (project, { name, clock }) => {
      if (!running.delete(`${name} ${project}`)) countStart(project, clock.now());
    },
    overlapped: (project, { clock }) => {
      // The run counts as started.
      const last = lastStarts.get(project) ?? NEVER;
      lastStarts.set(project, { ...last, wall: clock.now() });
    },
    check,
  };
}

import type { World } from '../../../src/simulator/world/world.ts';
import type { Course } from '../course.ts';
import { MINUTE, SECOND } from '../durations.ts';
import type { Life } from '../hosts.ts';
import type { Machine } from '../machine.ts';

/** How probable it is that a worker is cut off while a listing is on its way to it, with one project. */
const AT_POLL = 0.1;
/** How long such a listing takes, ms: a bit less than the time limit of a request. */
const LATE_MS = [9 * SECOND, 9.8 * SECOND] as const;
/** Time after which a worker that was cut off for a lease can have its projects back, at least: leases, and ms. */
const BACK_AFTER_LEASES = 1.25;
const BACK_AFTER_MS = SECOND;

/** Workers that are cut off from the database, while the others are not. */
export interface Partitions {
  /** Cuts a worker off for a while. */
  begin(own: Life): void;
  /**
   * A worker has sent a request for a listing. If it is cut off now, it loses the project to another one, and may get it back,
   * before that listing arrives. Returns how long the listing takes then, ms.
   */
  requested(own: Life): number | undefined;
  /** Whether no statement of this worker arrives. */
  isCutOff(machine: Machine): boolean;
}

export function createPartitions(course: Course, world: Pick<World, 'step'>): Partitions {
  const { kernel, isShared, leaseMs } = course;
  const [least, most] = LATE_MS;
  const canComeBack = isShared && BACK_AFTER_LEASES * leaseMs + BACK_AFTER_MS < least;
  const ends = new WeakMap<Machine, number>();

  function cutOff({ machine }: Life, ms: number): void {
    course.act('partition');
    ends.set(machine, Math.max(ends.get(machine) ?? 0, kernel.now() + ms));
    kernel.after(ms, course.disturbed);
  }

  return {
    begin: (own) => {
      const longest = kernel.chance(0.3) ? 10 * MINUTE : 2 * leaseMs;
      cutOff(own, kernel.between(SECOND, longest));
    },
    requested: (own) => {
      const isPossible = canComeBack && course.has('bad store') && !course.isCalm();
      if (!isPossible || !kernel.chance(AT_POLL / course.projects.length)) return undefined;
      cutOff(own, leaseMs + kernel.between(0, 0.2 * SECOND));
      // The others get another listing.
      kernel.after(kernel.between(SECOND, leaseMs), () => world.step());
      return kernel.between(least, most);
    },
    isCutOff: (machine) => !course.isCalm() && kernel.now() < (ends.get(machine) ?? 0),
  };
}

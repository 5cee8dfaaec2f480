import type { World } from '../../../src/simulator/world/world.ts';
import type { Course } from '../course.ts';
import { MINUTE, SECOND } from '../durations.ts';
import type { Host, Life } from '../hosts.ts';

/** Probability that a worker is cut off while a listing is on its way to it, divided by the number of projects. */
const AT_LISTING = 0.1;
/** How long such a listing takes, ms: a bit less than the time limit of a request. */
const MIN_LATE_MS = 9 * SECOND;
const MAX_LATE_MS = 9.8 * SECOND;
/** Minimum time until a worker that is cut off for a lease owns a project again: leases, plus ms. */
const MIN_RETURN_LEASES = 1.25;
const MIN_RETURN_MS = SECOND;

/** Hosts that are cut off from the database, while the others are not. */
export interface Partitions {
  /** Cuts a host off for a while. */
  begin(host: Host): void;
  /**
   * Called when a worker requests a listing. Sometimes cuts its host off meanwhile, so that others take the project, and may
   * give it back before the listing arrives. Returns the time that the listing takes then, ms.
   */
  delayListing(own: Life): number | undefined;
  /** Whether the host is cut off: nothing that it or the database sends now arrives. */
  isCutOff(host: Host): boolean;
}

export function createPartitions(course: Course, world: Pick<World, 'step'>): Partitions {
  const { kernel, isShared, leaseMs } = course;
  const isReturnPossible = isShared && MIN_RETURN_LEASES * leaseMs + MIN_RETURN_MS < MIN_LATE_MS;
  const ends = new Map<Host, number>();

  function cutOff(host: Host, ms: number): void {
    course.act('partition');
    ends.set(host, Math.max(ends.get(host) ?? 0, kernel.now() + ms));
    course.later(ms, course.disturbed);
  }

  return {
    begin: (host) => {
      const maxMs = kernel.chance(0.3) ? 10 * MINUTE : 2 * leaseMs;
      cutOff(host, kernel.between(SECOND, maxMs));
    },
    delayListing: ({ host }) => {
      const mayCutOff = isReturnPossible && !course.isCalm();
      if (!mayCutOff || !kernel.chance(AT_LISTING / course.projects.length)) return undefined;
      cutOff(host, leaseMs + kernel.between(0, 0.2 * SECOND));
      // The others get another listing.
      kernel.after(kernel.between(SECOND, leaseMs), () => world.step());
      return kernel.between(MIN_LATE_MS, MAX_LATE_MS);
    },
    isCutOff: (host) => !course.isCalm() && kernel.now() < (ends.get(host) ?? 0),
  };
}

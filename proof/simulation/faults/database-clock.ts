import type { Course } from '../course.ts';
import { HOUR, MINUTE, SECOND } from '../durations.ts';

/** Maximum time that a lease can have left, ms (src/store/postgres/ownership/lease.ts). */
const MAX_REMAINDER_MS = 10 * MINUTE;
/** Time, in addition to a lease, after which a worker has noticed that its lease did not hold, ms. */
const NOTICED_AFTER_MS = 30 * SECOND;

/** The clock of the database. */
export interface DatabaseClock {
  /** How far it is off, ms. */
  readonly offset: () => number;
  /** Sets the clock back: leases of dead workers would hold again, and places for requests lie in the future. */
  setBack(ms?: number): void;
  /** Whether it was just set back so far that no lease holds before its renewal: a project may have two acting owners. */
  readonly areLeasesDoubted: () => boolean;
}

export function createDatabaseClock(course: Course): DatabaseClock {
  const { kernel, leaseMs } = course;
  let offset = 0;
  let doubtedAt = -Infinity;
  return {
    offset: () => offset,
    setBack: (ms = kernel.random() * (kernel.chance(0.5) ? 3 * HOUR : 10 * MINUTE)) => {
      if (course.isCalm()) return;
      course.act('database clock set back');
      offset -= ms;
      if (ms > MAX_REMAINDER_MS - leaseMs) doubtedAt = kernel.now();
    },
    areLeasesDoubted: () => kernel.now() <= doubtedAt + NOTICED_AFTER_MS + leaseMs,
  };
}

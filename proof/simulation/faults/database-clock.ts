import type { Course } from '../course.ts';
import { HOUR, MINUTE } from '../durations.ts';

/** The clock of the database. */
export interface DatabaseClock {
  /** How far it is off, ms. */
  readonly offset: () => number;
  /** Sets it back: leases of the dead would hold again, and places for requests lie in the future. */
  setBack(ms?: number): void;
}

export function createDatabaseClock(course: Course): DatabaseClock {
  const { kernel } = course;
  let offset = 0;
  return {
    offset: () => offset,
    setBack: (ms = kernel.random() * (kernel.chance(0.5) ? 3 * HOUR : 10 * MINUTE)) => {
      if (course.isCalm()) return;
      course.act('database clock set back');
      offset -= ms;
    },
  };
}

import type { Course } from '../course.ts';
import { HOUR, MINUTE } from '../durations.ts';

/** Time that no lease can have left. */
const OLD_LEASE_MS = 10 * MINUTE;
/** Share of a lease for which another worker may not have read its renewal: two beats, and a bit. */
export const UNREAD = 0.8;

/** The clock of the database, and the leases that hold for longer when it was set back. */
export interface DatabaseClock {
  /** How far it is off, ms. */
  readonly offset: () => number;
  /** Leases of the dead would hold again, and places for requests lie in the future. */
  setBack(): void;
  /** A worker has ended, or was paused. */
  workerDied(): void;
  /** A standby that has everything until then has taken the place of the database. */
  tookOver(preparedAt: number): void;
  /**
   * Until when a lease can hold that is from before the clock was set back: nobody had read it before its worker died, or a
   * standby brings it back.
   */
  oldLeasesUntil(): number;
}

export function createDatabaseClock(course: Course): DatabaseClock {
  const { kernel, leaseMs } = course;
  let offset = 0;
  let setBackAt = -Infinity;
  let diedAt = -Infinity;
  let oldLeasesUntil = -Infinity;

  function keepOldLeases(): void {
    if (Math.abs(setBackAt - diedAt) > UNREAD * leaseMs) return;
    oldLeasesUntil = setBackAt + OLD_LEASE_MS;
  }

  return {
    offset: () => offset,
    setBack: () => {
      if (course.isCalm()) return;
      course.act('database clock set back');
      setBackAt = kernel.now();
      keepOldLeases();
      offset -= kernel.random() * (kernel.chance(0.5) ? 3 * HOUR : 10 * MINUTE);
    },
    workerDied: () => {
      diedAt = kernel.now();
      keepOldLeases();
    },
    tookOver: (preparedAt) => {
      if (setBackAt > preparedAt) oldLeasesUntil = kernel.now() + OLD_LEASE_MS;
    },
    oldLeasesUntil: () => oldLeasesUntil,
  };
}

import { type Scenario, wholeScenario } from './scenario.ts';

/** A run that once found something. */
export interface KeptScenario extends Scenario {
  /** Fault that it found. */
  readonly found: string;
}

/**
 * Small runs that once found a defect. Each is the same as long as the code draws the same random numbers; after that, it is
 * a run like any other.
 */
export const KEPT: readonly KeptScenario[] = [
  // A request for a lease that came late freed the projects of the next lease.
  {
    ...wholeScenario('workers', 16, { hours: 1.6, projects: 3 }),
    found: 'beta is not polled for 195 s',
  },
  // A stop left the timer of the pause after a failed request for places.
  {
    ...wholeScenario('workers', 22, { hours: 1.9, projects: 3 }),
    found: '1 timers are left after a stop',
  },
  // After a failover, a worker polled one project, and the database recorded another one as its own.
  {
    ...wholeScenario('workers', 92_005_398, { hours: 1.5, projects: 3 }),
    found: 'beta is not polled for 205 s',
  },
];

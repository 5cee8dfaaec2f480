import { type Scenario, wholeScenario } from './scenario.ts';

/** A run that once found something. */
export interface KeptScenario extends Scenario {
  /** What it found. */
  readonly found: string;
}

/**
 * Runs that once found a defect, made small. Each ends in the same way as long as nothing draws other numbers; after that it is
 * a run like any other.
 */
export const KEPT: readonly KeptScenario[] = [
  // A request for a lease that came late freed the projects of the next lease.
  {
    ...wholeScenario('workers', 16, { hours: 1.6, projects: 3 }),
    found: 'beta is not polled for 195 s',
  },
  // The pause after a failed request for places.
  {
    ...wholeScenario('workers', 22, { hours: 1.9, projects: 3 }),
    found: '1 timers are left after a stop',
  },
];

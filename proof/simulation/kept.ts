import type { Scenario } from './scenario.ts';

/** A run that once found something. */
export interface KeptScenario extends Scenario {
  /** What it found. */
  readonly found: string;
}

/**
 * Runs that once found a defect, made small. Each ends in the same way as long as nothing draws other numbers; after that it is
 * a run like any other.
 */
export const KEPT: readonly KeptScenario[] = [];

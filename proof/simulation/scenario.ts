/** One daemon with SQLite, or three workers with PostgreSQL. */
export const PARTS = ['daemon', 'workers'] as const;
export type Part = (typeof PARTS)[number];

/** A run: the seed decides everything that happens in it. */
export interface Scenario {
  readonly part: Part;
  readonly seed: number;
}

/** Simulated time of a run. */
export const HOURS = 4;
export const MAX_PROJECTS = 20;
const FEW_PROJECTS = 3;

/** Returns the number of projects in the run of a seed, and whether it has no faults. */
export function sizeOf(seed: number): { readonly projects: number; readonly isQuiet: boolean } {
  return { projects: seed % 5 === 0 ? MAX_PROJECTS : FEW_PROJECTS, isQuiet: seed % 16 === 0 };
}

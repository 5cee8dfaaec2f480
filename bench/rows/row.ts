import type { Profiler } from 'node:inspector';
import type { Goal, Measured } from '../result.ts';

export interface RowOptions {
  /** Prompts in a listing, for rows that are measured at several sizes. */
  readonly sizes: readonly number[];
  readonly runs: number;
  /** Whether the Python peer can run. */
  readonly python: boolean;
  /** Whether the rests before memory is read are short. */
  readonly quick: boolean;
  /** Receives CPU profiles of the last run of each size, if the row takes any. */
  readonly onProfiles?: (profiles: readonly Profiler.Profile[]) => void;
}

/** One kind of work, the goals for it, and how it is measured. */
export interface Row {
  /** Name on the command line. */
  readonly name: string;
  readonly title: string;
  readonly goals: readonly Goal[];
  /** Measures one size after the other. */
  measure(options: RowOptions): AsyncIterable<Measured>;
}

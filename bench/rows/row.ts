import type { Profiler } from 'node:inspector';
import type { Goal, Measured } from '../result.ts';

export interface RowOptions {
  /** Prompts in a listing, for rows that are measured at several sizes. */
  readonly sizes: readonly number[];
  readonly runs: number;
  /** The Python peer can take part. */
  readonly python: boolean;
  /** Rests are short, where memory is measured. */
  readonly quick: boolean;
  /** Is given CPU profiles of the last run of each size, where there are any. */
  readonly onProfiles?: (profiles: readonly Profiler.Profile[]) => void;
}

/** One kind of work, the goals for it, and how it is measured. */
export interface Row {
  /** As the command line is asked for it. */
  readonly name: string;
  readonly title: string;
  readonly goals: readonly Goal[];
  /** One size after the other. */
  measure(options: RowOptions): AsyncIterable<Measured>;
}

import type { Machine } from './machine.ts';
import type { Workload } from './workload.ts';

/** What one contender cost; what it has no figure of is left out. */
export interface Figures {
  /** User and system time of all its threads, of one round. */
  readonly cpuMs?: number;
  readonly wallMs?: number;
  /** Longest block of the event loop, in the median round. */
  readonly blockMs?: number;
  /** In the worst round: on a busy machine, how long others had the processor. */
  readonly worstBlockMs?: number;
  /** Most memory in RAM. */
  readonly peakBytes?: number;
  /** Memory in RAM when it has nothing to do. */
  readonly restBytes?: number;
}

/** At most `most`: a factor of what `over` has, bytes more than `above` has at rest, or itself in ms or bytes. */
export interface Goal {
  readonly metric: keyof Figures;
  /** Who has to reach it; by default evalwatch. */
  readonly of?: string;
  readonly over?: string;
  readonly above?: string;
  readonly most: number;
}

/** One row at one size. */
export interface Result extends Pick<Workload, 'projects' | 'prompts' | 'encoding'> {
  readonly row: string;
  /** What is done, in words. */
  readonly title: string;
  readonly goals: readonly Goal[];
  /** By contender; medians over the runs. */
  readonly figures: Readonly<Record<string, Figures>>;
}

/** Everything that was measured by one command. */
export interface Report {
  readonly machine: Machine;
  readonly runs: number;
  readonly results: readonly Result[];
}

export type Measured = Pick<Result, 'projects' | 'prompts' | 'encoding' | 'figures'>;

/** What evalwatch reached; undefined where it was not measured. */
export function reached(goal: Goal, figures: Result['figures']): number | undefined {
  const { metric, of = 'evalwatch', over, above } = goal;
  const own = figures[of]?.[metric];
  const other = figures[over ?? above ?? of]?.[above === undefined ? metric : 'restBytes'];
  if (own === undefined || other === undefined) return undefined;
  if (over !== undefined) return own / other;
  return above === undefined ? own : own - other;
}

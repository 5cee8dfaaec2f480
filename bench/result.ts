import type { Machine } from './machine.ts';
import type { Workload } from './workload.ts';

/** Cost of one contender; figures that were not measured are absent. */
export interface Figures {
  /** User and system time of all its threads, per round. */
  readonly cpuMs?: number;
  readonly wallMs?: number;
  /** Longest block of the event loop, in the median round. */
  readonly blockMs?: number;
  /** Longest block in the worst round. Other processes on the machine lengthen it. */
  readonly worstBlockMs?: number;
  /** Peak resident memory. */
  readonly peakBytes?: number;
  /** Resident memory while idle. */
  readonly restBytes?: number;
}

/** Limit of a figure: `most` times that of `over`, `most` bytes above `restBytes` of `above`, or `most` ms or bytes. */
export interface Goal {
  readonly metric: keyof Figures;
  /** Contender that has to reach it; default evalwatch. */
  readonly of?: string;
  readonly over?: string;
  readonly above?: string;
  readonly most: number;
}

/** One row at one size. */
export interface Result extends Pick<Workload, 'projects' | 'prompts' | 'encoding'> {
  readonly row: string;
  readonly title: string;
  readonly goals: readonly Goal[];
  /** Medians over the runs, by contender. */
  readonly figures: Readonly<Record<string, Figures>>;
}

/** Everything that was measured by one command. */
export interface Report {
  readonly machine: Machine;
  readonly runs: number;
  readonly results: readonly Result[];
}

export type Measured = Pick<Result, 'projects' | 'prompts' | 'encoding' | 'figures'>;

/** Returns the value to compare with `goal.most`; undefined if not measured. */
export function reached(goal: Goal, figures: Result['figures']): number | undefined {
  const { metric, of = 'evalwatch', over, above } = goal;
  const own = figures[of]?.[metric];
  const other = figures[over ?? above ?? of]?.[above === undefined ? metric : 'restBytes'];
  if (own === undefined || other === undefined) return undefined;
  if (over !== undefined) return own / other;
  return above === undefined ? own : own - other;
}

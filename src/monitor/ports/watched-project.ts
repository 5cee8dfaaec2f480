import type { Expectations } from '../../domain/limits.ts';
import type { PollHealth } from './store.ts';

/** A configured project, for metrics and the status page. */
export interface ConfiguredProject {
  readonly id: string;
  /** Whether its datasets are watched too. */
  readonly datasets: boolean;
  /** Empty without a team. */
  readonly team: string;
  readonly expect: Expectations;
}

export interface WatchedProject extends ConfiguredProject {
  /** Current poll health, also while the store cannot be written. */
  readonly health: PollHealth;
}

/** Next poll of a project by its current schedule. */
export interface ProjectSchedule {
  /** Epoch ms; undefined if another worker polls the project. */
  readonly nextPollAt: number | undefined;
  readonly maxIntervalSeconds: number;
}

/** One run of a project's schedule. */
export interface PollRun {
  /** When the run was due, epoch ms. */
  readonly dueAt: number;
  /** Whether the poll ends a pause, if it succeeds: it is the first one that begins after it. */
  readonly endsPause?: boolean;
}

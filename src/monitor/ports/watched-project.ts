import type { PollHealth } from './store.ts';

/** A configured project, as metrics and status page show it. */
export interface WatchedProject {
  readonly id: string;
  /** Whether its datasets are watched too. */
  readonly datasets: boolean;
  /** Right also while the store cannot be written. */
  readonly health: PollHealth;
}

/** When a project is polled, as its schedule is at the moment. */
export interface ProjectSchedule {
  readonly project: string;
  /** Epoch ms; undefined while nothing is due, or while another worker polls it. */
  readonly nextPollAt: number | undefined;
  readonly maxIntervalSeconds: number;
}

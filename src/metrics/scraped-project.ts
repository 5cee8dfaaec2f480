import type { StateExpectations } from '../monitor/ports/expectations.ts';
import type { PollHealth, ProjectSnapshot } from '../monitor/ports/store.ts';
import type { ProjectSchedule, WatchedProject } from '../monitor/ports/watched-project.ts';

/** The counts and the configuration of a project. */
export interface ProjectCounts {
  /** The label `project`, rendered. */
  readonly labels: string;
  /** The labels `project` and `team`, rendered. */
  readonly infoLabels: string;
  readonly datasets: boolean;
  readonly expect: WatchedProject['expect'];
  readonly polls: number;
  readonly unchanged: number;
  readonly overlapped: number;
  readonly missed: number;
  /** In the order of the reasons; the array is replaced when a count changes, as the following ones. */
  readonly failures: readonly number[];
  readonly anomalies: readonly number[];
  /** The values of the histograms of PENDING and RUNNING. */
  readonly durations: readonly number[];
}

/** What a scrape shows of a project, read at one moment. None of it changes afterwards. */
export interface ScrapedProject {
  readonly counts: ProjectCounts;
  /** From memory, to be correct while the store cannot be written. */
  readonly health: PollHealth;
  readonly schedule: ProjectSchedule | undefined;
  readonly expectations: StateExpectations | undefined;
  /** Absent if the store could not be read. */
  readonly stored: ProjectSnapshot | undefined;
}

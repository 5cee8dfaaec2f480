import type { StoreFailureReason } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { StateExpectations } from '../../monitor/ports/expectations.ts';
import type { PollHealth, StoreReader } from '../../monitor/ports/store.ts';
import type { WatchedProject } from '../../monitor/ports/watched-project.ts';
import type { ReloadResult } from '../reload-result.ts';

/** Sources of the status page. Times are epoch ms. */
export interface PageContent {
  readonly version: string;
  readonly clock: Clock;
  readonly store: Pick<
    StoreReader,
    | 'snapshot'
    | 'projects'
    | 'statuses'
    | 'transitions'
    | 'failures'
    | 'causes'
    | 'moves'
    | 'failureCounts'
  >;
  /** Time for which the store keeps transitions, ms. */
  readonly retentionMs: number;
  /** Template of the address of a prompt at the service; undefined without one. */
  promptUrl(): string | undefined;
  /** Store open, scheduler running, not stopping. */
  isReady(): boolean;
  /** Whether the page of a project offers to poll it now. */
  isLifecycleEnabled(): boolean;
  /** The configured projects, from memory. */
  projects(): readonly ShownProject[];
  /** State of evalwatch itself. */
  monitor(): MonitorState;
}

export interface ShownProject extends WatchedProject {
  /** False for a project of another worker as long as the store could not be read. */
  readonly isHealthKnown: boolean;
  /** In the past if a tick is late; undefined while nothing is due. */
  readonly nextPollAt: number | undefined;
  /** Undefined until its durations were read for the first time. */
  readonly expectations: StateExpectations | undefined;
}

export interface MonitorState {
  readonly startedAt: number;
  /** Undefined before the first write. */
  readonly lastCommitAt: number | undefined;
  readonly lastCommitFailure: CommitFailure | undefined;
  /** Undefined before the first reload. */
  readonly lastReload: LastReload | undefined;
  /** Runs that never started, and runs skipped because the one before still ran, since the start. */
  readonly missedRuns: number;
  readonly skippedRuns: number;
  readonly lastLostRunAt: number | undefined;
}

interface CommitFailure {
  readonly at: number;
  readonly reason: StoreFailureReason;
}

export interface LastReload extends ReloadResult {
  readonly at: number;
}

/** Whether a project is polled successfully. */
export type ProjectState =
  | { readonly kind: 'up' }
  | ({ readonly kind: 'down' } & Pick<PollHealth, 'reason' | 'failure'>)
  /** Its poll has been due for longer than a minute. */
  | { readonly kind: 'late'; readonly dueAt: number }
  | { readonly kind: 'new' }
  /** Another worker polls it, and the store could not be read yet. */
  | { readonly kind: 'unknown' };

import type { StoreFailureReason } from '../monitor/errors.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { StoreReader } from '../monitor/ports/store.ts';
import type { ProjectInMemory } from '../rows/fields.ts';
import type { OnBug } from './errors.ts';
import type { EventFeed } from './events/feed.ts';
import type { RenderMetrics } from './scrapes.ts';

/** What the web server shows, and what a request can have done. Times are epoch ms. */
export interface WebContent {
  readonly version: string;
  readonly clock: Clock;
  readonly store: Omit<StoreReader, 'snapshot' | 'durations' | 'close'>;
  /** Reads the projects as stored, all or one. With several workers, `projects` has the health of others from the last one. */
  readonly snapshot: StoreReader['snapshot'];
  /** Time for which the store keeps transitions, ms. */
  readonly retentionMs: number;
  readonly feed: EventFeed;
  readonly renderMetrics: RenderMetrics;
  /** Whether the scheduler is running, not stopping, and with several workers this one is connected. */
  isScheduling(): boolean;
  /** The same, and the store is in its place. */
  isReady(): boolean;
  /** Whether the configuration allows a reload and polls on request. */
  isLifecycleEnabled(): boolean;
  /** Template of the address of a prompt at the service; undefined without one. */
  promptUrl(): string | undefined;
  /** The configuration in force, in the words of its file and without its secrets. */
  config(): object;
  /** The configured projects, from memory. */
  projects(): readonly ShownProject[];
  /** Returns one of them; undefined if it is not configured. */
  project(id: string): ShownProject | undefined;
  /** State of evalwatch itself. */
  monitor(): MonitorState;
  /** Reloads the configuration. */
  reload(): Promise<ReloadResult>;
  readonly pollNow: PollNow;
  /** The daemon continues after a bug: no request may end it. */
  readonly onBug: OnBug;
}

export interface ShownProject extends ProjectInMemory {
  /** False for a project of another worker as long as the store could not be read. */
  readonly isHealthKnown: boolean;
  /** Whether it is polled by its schedule for idle projects. */
  readonly isIdle: boolean;
}

/** Result of loading the configuration again. */
export interface ReloadResult {
  readonly ok: boolean;
  /** Reasons for the failure, one line each; empty after a success. */
  readonly reasons: readonly string[];
}

export interface MonitorState {
  readonly startedAt: number;
  /** Undefined before the first write. */
  readonly lastCommitAt: number | undefined;
  readonly lastCommitFailure:
    { readonly at: number; readonly reason: StoreFailureReason } | undefined;
  /** Undefined before the first reload. */
  readonly lastReload: (ReloadResult & { readonly at: number }) | undefined;
  /** Runs that never started, and runs skipped because the one before still ran, since the start. */
  readonly missedRuns: number;
  readonly skippedRuns: number;
  readonly lastLostRunAt: number | undefined;
  /** The receivers of messages; with several workers, as this one has seen them. */
  readonly receivers: readonly ReceiverState[];
}

interface ReceiverState {
  readonly name: string;
  /** Since when it has taken no message, and why not the last one; undefined while it takes them. */
  readonly failing: { readonly since: number; readonly reason: string } | undefined;
  /** Since when something waits for it, epoch ms; undefined if nothing does. */
  readonly oldestDueAt: number | undefined;
}

/**
 * Polls a project that this process owns, or with undefined all of them, beside their schedules
 * (docs/specification.md#poll-now). Resolves when the polls have ended, and at the latest after a few seconds.
 */
export type PollNow = (project: string | undefined) => Promise<PollNowResult>;

export type PollNowResult =
  | {
      readonly polled: readonly FinishedPoll[];
      /** Number of polls that have not ended yet; they continue. */
      readonly pending: number;
    }
  | {
      readonly refusal: 'unknown' | 'elsewhere' | 'running' | 'busy' | 'paused';
      readonly error: string;
    };

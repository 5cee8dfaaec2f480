import { expectationIn, type ExpectationsOf, isStuck } from '../domain/limits.ts';
import type { UnfinishedStatus } from '../domain/status.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollHealth } from '../monitor/ports/store.ts';
import type { ConfiguredProject } from '../monitor/ports/watched-project.ts';
import type { NotifyStore } from './ports.ts';

/** A project is down after so many failed polls, or after so many intervals without a poll, but not before this time, ms. */
export const DOWN_POLLS = 3;
export const MIN_DOWN_MS = 5 * 60_000;
/** Time by which a poll may be late, or take, before what the last one saw is too old to call a prompt stuck, ms. */
const MAX_LATE_MS = 60_000;

export interface ConditionOptions {
  readonly store: Pick<NotifyStore, 'snapshot'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly health: (project: string) => PollHealth | undefined;
  readonly expectationsOf: ExpectationsOf;
  /** Whether nothing is to be told of a project. */
  readonly isQuiet: (project: string) => boolean;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
}

/** A project of a receiver that this process polls, and what the receiver was told of it. */
export interface Watched {
  /** Monotonic ms. */
  readonly since: number;
  /** Whether prompts were told to be stuck. */
  isStuckTold: boolean;
  /** For each status, since when the first prompt is in it that was not told to be stuck, epoch ms; undefined if not read. */
  readonly untoldSince: Partial<Record<UnfinishedStatus, number>>;
  /** Since when it is down, as it was told, epoch ms; undefined if that was not told, or is over. */
  downSince: number | undefined;
}

/** A project that has not been polled since a time, and until another one if that is over. Epoch ms. */
export interface Outage {
  readonly project: ConfiguredProject;
  readonly since: number;
  readonly until: number | undefined;
}

/** Finds in memory what begins and ends without an event. */
export class Conditions {
  readonly #options: ConditionOptions;

  constructor(options: ConditionOptions) {
    this.#options = options;
  }

  /** Whether prompts may have become stuck that were not told to be. */
  mayBeStuck(id: string, { untoldSince }: Watched): boolean {
    const { store, health, clock, expectationsOf, isQuiet, maxIntervalMs } = this.#options;
    if (isQuiet(id)) return false;
    const oldest = store.snapshot(id)?.listings.get('prompt')?.oldest;
    const { up, lastPollAt = -Infinity } = health(id) ?? {};
    // While polls fail, and before the first one after a pause, prompts may have moved.
    const isKnown = up === true && clock.now() - lastPollAt <= maxIntervalMs(id) + MAX_LATE_MS;
    if (oldest === undefined || !isKnown) return false;
    return oldest.entries().some(([status, since]) => {
      const waitingMs = clock.now() - Math.max(since, untoldSince[status] ?? -Infinity);
      return isStuck(waitingMs, expectationIn(status, expectationsOf(id)));
    });
  }

  /** Returns what is to be told of a project: that it is down, or that it was and is no longer; undefined if nothing is. */
  outageOf(project: ConfiguredProject, watched: Watched): Outage | undefined {
    const { downSince } = watched;
    if (this.#options.isQuiet(project.id)) return undefined;
    const since = downSince ?? this.#downSince(project.id, watched);
    const until = downSince === undefined ? undefined : this.#upSince(project.id, downSince);
    const isNews = downSince === undefined || until !== undefined;
    return since === undefined || !isNews ? undefined : { project, since, until };
  }

  /** Returns since when a project has not been polled, epoch ms; undefined while it is not down. */
  #downSince(project: string, watched: Watched): number | undefined {
    const { store, health: healthOf, clock, maxIntervalMs } = this.#options;
    const health = healthOf(project);
    const since = health?.lastSuccessAt ?? store.snapshot(project)?.configuredAt;
    if (health === undefined || since === undefined) return undefined;
    const downMs = clock.now() - since;
    if (downMs <= MIN_DOWN_MS) return undefined;
    // While this process did not poll it, no poll was missing. Nor was one before the last one: it may have been idle, or paused.
    const silentMs = clock.now() - (health.lastPollAt ?? since);
    const missedMs = Math.min(silentMs, clock.monotonic() - watched.since);
    const isDown =
      health.consecutiveFailures >= DOWN_POLLS || missedMs > DOWN_POLLS * maxIntervalMs(project);
    return isDown ? since : undefined;
  }

  /** Returns since when a project that was down is polled again, epoch ms; undefined while it is not. */
  #upSince(project: string, downSince: number): number | undefined {
    const { lastSuccessAt = -Infinity, steadySince } = this.#options.health(project) ?? {};
    if (lastSuccessAt <= downSince) return undefined;
    return steadySince !== undefined && steadySince > downSince ? steadySince : lastSuccessAt;
  }
}

import {
  dayOf,
  expectationOf,
  learn,
  type Expectations,
  type LearnedState,
  LEARNED_DAYS,
  type ExpectationsOf,
} from '../domain/limits.ts';
import { UNFINISHED_STATUSES, type UnfinishedStatus } from '../domain/status.ts';
import type { Observer } from './events.ts';
import type { Clock } from './ports/clock.ts';
import type { StoreReader } from './ports/store.ts';

/** A configured project. */
interface ExpectingProject {
  readonly id: string;
  readonly expect: Expectations;
}

export interface ExpectationsOptions {
  readonly store: Pick<StoreReader, 'durations'>;
  readonly clock: Clock;
  /** Returns the configured projects by id. */
  readonly projects: () => ReadonlyMap<string, ExpectingProject>;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
}

/** Expectations of all configured projects, kept in memory for scrapes, pages and commands. */
export interface LearnedExpectations {
  readonly of: ExpectationsOf;
  /**
   * Learns again what can have changed: each state once a day, or after another schedule; and a state with too few durations
   * for a typical one after a transition of the project, or some minutes later, because other workers count as well. Calls run
   * one after the other.
   * @throws {StoreError} and the rest is learned at the next call
   */
  refresh(): Promise<void>;
  /** Notes when a project had a transition. */
  readonly observe: Observer;
}

/** Number of states whose durations are read at once, which takes some milliseconds. */
const STATES_PER_READ = 10;
/** The same for states that had too few durations for a typical one when they were learned before. */
const YOUNG_STATES_PER_READ = 100;

/** A status of a project's prompts, with what its limit depends on besides the durations. */
interface LearningState {
  readonly project: string;
  readonly status: UnfinishedStatus;
  readonly maxIntervalMs: number;
}

/** Interval at which a state with too few durations is learned again without a transition, ms. */
const RELEARN_INTERVAL_MS = 5 * 60 * 1000;

interface Remembered extends LearnedState {
  /** The UTC day for which it was learned, days since 1970. */
  readonly day: number;
  readonly maxIntervalMs: number;
  /** When it was learned, monotonic ms. */
  readonly learnedAt: number;
}

/** Creates expectations that know nothing before the first `refresh` (docs/specification.md#learned-limits). */
export function createExpectations(options: ExpectationsOptions): LearnedExpectations {
  const { store, clock, projects, maxIntervalMs } = options;
  const remembered = new Map<string, Partial<Record<UnfinishedStatus, Remembered>>>();
  /** Time of the last transition of each project, monotonic ms. */
  const movedAt = new Map<string, number>();
  let last: Promise<void> = Promise.resolve();

  /**
   * Whether nothing that a state depends on can have changed since it was learned.
   * @param outdatedAt a state without a typical duration is outdated if it was learned at or before this time, monotonic ms
   */
  function isCurrent(
    known: Remembered | undefined,
    today: number,
    intervalMs: number,
    outdatedAt: number,
  ): boolean {
    if (known?.day !== today || known.maxIntervalMs !== intervalMs) return false;
    return known.typicalMs !== undefined || known.learnedAt > outdatedAt;
  }

  async function learnStates(states: readonly LearningState[]): Promise<void> {
    const now = clock.now();
    const learnedAt = clock.monotonic();
    const asked = states.map(({ project, status }) => ({ project, status }));
    const durations = await store.durations(asked, dayOf(now) - LEARNED_DAYS);
    for (const [index, { project, status, maxIntervalMs: interval }] of states.entries()) {
      const counts = durations[index]?.counts ?? [];
      const learned = learn(counts, { status, now, maxIntervalMs: interval });
      const others = remembered.get(project);
      const entry = { ...learned, day: dayOf(now), maxIntervalMs: interval, learnedAt };
      remembered.set(project, { ...others, [status]: entry });
    }
  }

  async function learnOutdated(): Promise<void> {
    for (const map of [remembered, movedAt]) {
      for (const id of map.keys()) if (!projects().has(id)) map.delete(id);
    }
    const today = dayOf(clock.now());
    const relearnUntil = clock.monotonic() - RELEARN_INTERVAL_MS;
    const young: LearningState[] = [];
    const old: LearningState[] = [];
    for (const project of projects().keys()) {
      const intervalMs = maxIntervalMs(project);
      const states = remembered.get(project);
      const outdatedAt = Math.max(movedAt.get(project) ?? -Infinity, relearnUntil);
      for (const status of UNFINISHED_STATUSES) {
        const known = states?.[status];
        if (isCurrent(known, today, intervalMs, outdatedAt)) continue;
        const isYoung = known !== undefined && known.typicalMs === undefined;
        (isYoung ? young : old).push({ project, status, maxIntervalMs: intervalMs });
      }
    }
    await learnInParts(young, YOUNG_STATES_PER_READ);
    await learnInParts(old, STATES_PER_READ);
  }

  async function learnInParts(states: readonly LearningState[], size: number): Promise<void> {
    for (let start = 0; start < states.length; start += size) {
      await learnStates(states.slice(start, start + size));
    }
  }

  return {
    of: (id) => {
      const project = projects().get(id);
      const { PENDING: pending, RUNNING: running } = remembered.get(id) ?? {};
      if (project === undefined || pending === undefined || running === undefined) return undefined;
      const { limits } = project.expect;
      return {
        PENDING: expectationOf(limits.PENDING, pending),
        RUNNING: expectationOf(limits.RUNNING, running),
      };
    },
    refresh: () => {
      last = last.catch(() => {}).then(learnOutdated);
      return last;
    },
    observe: (event) => {
      if (event.type === 'record.transition') movedAt.set(event.project, clock.monotonic());
    },
  };
}

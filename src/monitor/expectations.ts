import { dayOf } from '../domain/durations.ts';
import {
  expectationOf,
  learn,
  type Expectations,
  type LearnedState,
} from '../domain/expectation.ts';
import { LEARNED_DAYS } from '../domain/learned-limit.ts';
import { UNFINISHED_STATUSES, type UnfinishedStatus } from '../domain/status.ts';
import type { Observer } from './events.ts';
import type { Clock } from './ports/clock.ts';
import type { ExpectationsOf } from './ports/expectations.ts';
import type { StoreReader } from './ports/store.ts';

/** A configured project. */
interface ExpectingProject {
  readonly id: string;
  readonly expect: Expectations;
}

export interface ExpectationsOptions {
  readonly store: Pick<StoreReader, 'durations'>;
  readonly clock: Pick<Clock, 'now'>;
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
   * for a typical one after a move of the project's prompts, or some minutes later, because other workers count as well.
   * @throws {StoreError} and the rest is learned at the next call
   */
  refresh(): Promise<void>;
  /** Notes which projects had transitions. */
  readonly observe: Observer;
}

/** Number of states whose durations are read at once, which takes some milliseconds. */
const STATES_PER_READ = 10;

/** A status of a project's prompts, with what its limit depends on besides the durations. */
interface LearningState {
  readonly project: string;
  readonly status: UnfinishedStatus;
  readonly maxIntervalMs: number;
}

/** Interval at which states with too few durations are learned again although this process has counted none, ms. */
const UNKNOWN_AGAIN_MS = 5 * 60 * 1000;

interface Remembered extends LearnedState {
  /** The UTC day for which it was learned, days since 1970. */
  readonly day: number;
  readonly maxIntervalMs: number;
  /** When it was learned, epoch ms. */
  readonly at: number;
}

/** Creates expectations that know nothing before the first `refresh` (docs/specification.md#learned-limits). */
export function createExpectations(options: ExpectationsOptions): LearnedExpectations {
  const { store, clock, projects, maxIntervalMs } = options;
  const remembered = new Map<string, Partial<Record<UnfinishedStatus, Remembered>>>();
  /** Projects of which a prompt has moved since their states were learned. */
  const moved = new Set<string>();
  let refreshing: Promise<void> | undefined;

  function isCurrent({ project, status, maxIntervalMs: interval }: LearningState): boolean {
    const last = remembered.get(project)?.[status];
    const now = clock.now();
    if (last?.day !== dayOf(now) || last.maxIntervalMs !== interval) return false;
    return (
      last.typicalMs !== undefined || !(moved.has(project) || now - last.at >= UNKNOWN_AGAIN_MS)
    );
  }

  async function learnStates(states: readonly LearningState[]): Promise<void> {
    const now = clock.now();
    const asked = states.map(({ project, status }) => ({ project, status }));
    const durations = await store.durations(asked, dayOf(now) - LEARNED_DAYS);
    for (const [index, { project, status, maxIntervalMs: interval }] of states.entries()) {
      const counts = durations[index]?.counts ?? [];
      const learned = learn(counts, { status, now, maxIntervalMs: interval });
      const others = remembered.get(project);
      const entry = { ...learned, day: dayOf(now), maxIntervalMs: interval, at: now };
      remembered.set(project, { ...others, [status]: entry });
    }
  }

  async function refresh(): Promise<void> {
    const ids = [...projects().keys()];
    for (const id of remembered.keys()) if (!projects().has(id)) remembered.delete(id);
    const states = ids.flatMap((project) =>
      UNFINISHED_STATUSES.map((status) => {
        return { project, status, maxIntervalMs: maxIntervalMs(project) };
      }),
    );
    const outdated = states.filter((state) => !isCurrent(state));
    moved.clear();
    for (let start = 0; start < outdated.length; start += STATES_PER_READ) {
      await learnStates(outdated.slice(start, start + STATES_PER_READ));
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
      refreshing ??= refresh().finally(() => {
        refreshing = undefined;
      });
      return refreshing;
    },
    observe: (event) => {
      if (event.type === 'record.transition') moved.add(event.project);
    },
  };
}

import {
  dayOf,
  expectationOf,
  learn,
  LEARNED_DAYS,
  type Expectations,
  type LearnedState,
  type StateExpectations,
} from '../domain/limits.ts';
import { UNFINISHED_STATUSES, type UnfinishedStatus } from '../domain/status.ts';
import type { Clock } from './ports/clock.ts';
import type { StoreReader } from './ports/store.ts';

export interface ExpectationsOptions {
  readonly store: Pick<StoreReader, 'durations'>;
  readonly clock: Clock;
  /** Returns the configured projects by id. */
  readonly projects: () => ReadonlyMap<string, { readonly expect: Expectations }>;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
}

/** Number of states whose durations are read at once, which takes some milliseconds. */
const STATES_PER_READ = 10;
/** Interval at which a state with too few durations is learned again, ms. */
const RELEARN_INTERVAL_MS = 5 * 60 * 1000;

/** What was learned of a status of a project's prompts, and what it depends on besides the durations. */
interface Remembered extends LearnedState {
  /** The UTC day for which it was learned, days since 1970. */
  readonly day: number;
  readonly maxIntervalMs: number;
  /** When it was learned, monotonic ms. */
  readonly learnedAt: number;
}

/**
 * Expectations of all configured projects, kept in memory for scrapes, pages and commands
 * (docs/specification.md#learned-limits). They know nothing before the first `refresh`.
 */
export class LearnedExpectations {
  readonly #options: ExpectationsOptions;
  readonly #remembered = new Map<string, Partial<Record<UnfinishedStatus, Remembered>>>();
  #last: Promise<void> = Promise.resolve();

  constructor(options: ExpectationsOptions) {
    this.#options = options;
  }

  /** Returns the expectations of a configured project; undefined until its durations were read for the first time. */
  readonly of = (id: string): StateExpectations | undefined => {
    const limits = this.#options.projects().get(id)?.expect.limits;
    const { PENDING: pending, RUNNING: running } = this.#remembered.get(id) ?? {};
    if (limits === undefined || pending === undefined || running === undefined) return undefined;
    return {
      PENDING: expectationOf(limits.PENDING, pending),
      RUNNING: expectationOf(limits.RUNNING, running),
    };
  };

  /**
   * Learns again what can have changed: each state once a day, or after another schedule, and every 5 minutes while it has too
   * few durations for a typical one. Calls run one after the other.
   * @throws {StoreError} and the rest is learned at the next call
   */
  readonly refresh = (): Promise<void> => {
    this.#last = this.#last.catch(() => {}).then(() => this.#learnOutdated());
    return this.#last;
  };

  async #learnOutdated(): Promise<void> {
    const { projects, maxIntervalMs } = this.#options;
    for (const id of this.#remembered.keys()) {
      if (!projects().has(id)) this.#remembered.delete(id);
    }
    const outdated = projects()
      .keys()
      .flatMap((project) =>
        UNFINISHED_STATUSES.map((status) => ({
          project,
          status,
          maxIntervalMs: maxIntervalMs(project),
        })),
      )
      .filter((state) => this.#isOutdated(state))
      .toArray();
    for (let start = 0; start < outdated.length; start += STATES_PER_READ) {
      await this.#learn(outdated.slice(start, start + STATES_PER_READ));
    }
  }

  /** Whether something that a state depends on can have changed since it was learned. */
  #isOutdated({ project, status, maxIntervalMs }: LearningState): boolean {
    const { clock } = this.#options;
    const known = this.#remembered.get(project)?.[status];
    if (known?.day !== dayOf(clock.now()) || known.maxIntervalMs !== maxIntervalMs) return true;
    if (known.typicalMs !== undefined) return false;
    return clock.monotonic() - known.learnedAt >= RELEARN_INTERVAL_MS;
  }

  async #learn(states: readonly LearningState[]): Promise<void> {
    const { store, clock } = this.#options;
    const now = clock.now();
    const day = dayOf(now);
    const learnedAt = clock.monotonic();
    const durations = await store.durations(states, day - LEARNED_DAYS);
    for (const [index, { project, status, maxIntervalMs }] of states.entries()) {
      const learned = learn(durations[index]?.counts ?? [], { status, now, maxIntervalMs });
      const remembered = { ...learned, day, maxIntervalMs, learnedAt };
      this.#remembered.set(project, { ...this.#remembered.get(project), [status]: remembered });
    }
  }
}

/** A status of a project's prompts, with the longest interval of its schedule, ms. */
interface LearningState {
  readonly project: string;
  readonly status: UnfinishedStatus;
  readonly maxIntervalMs: number;
}

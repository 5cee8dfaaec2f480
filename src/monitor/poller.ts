import { countDurations } from '../domain/limits.ts';
import type { AnomalySummary, Listing } from '../domain/record.ts';
import { KINDS, type Kind } from '../domain/status.ts';
import { compareListing, type Changes } from '../domain/transition.ts';
import { inTurns } from '../domain/turns.ts';
import { ApiError, StoreError } from './errors.ts';
import type { FinishedPoll, Observer, PollFailure } from './events.ts';
import {
  afterFailure,
  afterSuccess,
  distrustEtag,
  markNotStored,
  memoryOf,
  NEVER_POLLED,
  revalidationOf,
  type ListingMemory,
  type ProjectMemory,
} from './memory.ts';
import type { Clock } from './ports/clock.ts';
import type { EvaluationService, ListingAnswer, Shutdown } from './ports/service.ts';
import type { PollRun } from './ports/watched-project.ts';
import type {
  Committed,
  CommittedTransition,
  FinishRow,
  KnownProject,
  PollCommit,
  PollHealth,
  Store,
} from './ports/store.ts';

export interface PollerOptions {
  readonly service: Pick<EvaluationService, 'list' | 'storing'>;
  readonly store: Pick<Store, 'loadKnown' | 'commitPoll' | 'keepHealth' | 'isFinishing'>;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Read at each poll, as it can change at run time. */
  readonly missingAfter: () => number;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
  readonly shutdown: Shutdown;
}

/** Settings of a project that a poll needs. */
export interface PolledProject {
  readonly id: string;
  readonly datasets: boolean;
}

/** The listings of a poll: the service's answers, and the errors instead of them. */
interface Readings {
  readonly answers: ReadonlyMap<Kind, ListingAnswer>;
  readonly errors: ReadonlyMap<Kind, ApiError>;
}

/** What a poll found: all that its commit and its events need, without the records that it compared. */
interface Findings {
  /** Epoch ms. */
  readonly at: number;
  readonly failure: PollFailure | undefined;
  /** Whether every listing was the same as the last one. */
  readonly unchanged: boolean;
  /** Anomalies of each listing that was read. */
  readonly anomalies: ReadonlyMap<Kind, readonly AnomalySummary[]>;
  /** Comparison with the known records, or why the store could not load them. */
  readonly compared: Comparison | StoreError;
}

/** Result of comparing the listings of a poll with the known records. */
interface Comparison {
  /** Token of the known records, which the commit checks. */
  readonly token: string;
  /** Changes to store, by kind; kinds without any are absent. */
  readonly changes: ReadonlyMap<Kind, Changes>;
  /** What to remember of the listings once the changes are stored. */
  readonly listings: ReadonlyMap<Kind, ListingMemory>;
}

interface Outcome extends Committed {
  readonly health: PollHealth;
  readonly failure: PollFailure | undefined;
  readonly isStored: boolean;
  readonly changes: ReadonlyMap<Kind, Changes>;
}

/** An unchanged complete listing, as far as the records are concerned that it lacks: only those are loaded. */
const LACKING: Listing = {
  records: new Map(),
  idsWithoutStatus: new Set(),
  complete: true,
  anomalies: [],
};

/** Log lines are written synchronously, so emitting many events at once would block the event loop. */
const EVENTS_PER_TURN = 64;

/** The project was unwatched before a request of a listing went out. */
class UnwatchedError extends Error {}

/** Polls projects, and alone decides the order of a poll's steps (docs/specification.md#commits). */
export class Poller {
  readonly #options: PollerOptions;
  readonly #projects = new Map<string, ProjectMemory>();
  /** Started runs. A poll whose commit is refused is repeated, but its run starts only once. */
  readonly #started = new WeakSet<PollRun>();

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /**
   * Starts watching a project with this health, undefined if it was never polled. Drops the memory of its listings, and a
   * running poll commits nothing: another process may have polled the project meanwhile.
   */
  watch(project: string, health: PollHealth = NEVER_POLLED): void {
    this.#projects.set(project, newMemory(health));
  }

  /**
   * Stops watching a project. A running poll of it commits nothing, and one that waits to send its first request sends none.
   */
  unwatch(project: string): void {
    this.#projects.delete(project);
  }

  /** Drops the memory of all listings. Called when the service was replaced. */
  dropListings(): void {
    for (const memory of this.#projects.values()) memory.listings = new Map();
  }

  health(project: string): PollHealth {
    return this.#projects.get(project)?.health ?? NEVER_POLLED;
  }

  /**
   * Polls a project once: fetch, compare, commit, then emit. Resolves with undefined if the poll had no effect: a shutdown
   * aborted it, the project was unwatched meanwhile, or another process committed a listing first, so that the poll has to
   * be repeated. Failures of the service or the store do not reject.
   */
  async poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined> {
    const { clock, emit } = this.#options;
    const { id } = project;
    const started = clock.monotonic();
    const memory = this.#projects.get(id) ?? newMemory(NEVER_POLLED);
    this.#projects.set(id, memory);
    const { listings } = memory;
    using held = new DisposableStack();
    const found = await this.#find(project, run, memory, held);
    if (found === undefined) return undefined;

    const outcome = await this.#commit(id, found, memory, listings);
    if (outcome === undefined) return undefined;
    const { health, failure, changes, transitions } = outcome;
    const finished: FinishedPoll = {
      type: 'poll.finished',
      project: id,
      durationMs: clock.monotonic() - started,
      health,
      failuresBefore: memory.health.consecutiveFailures,
      failure,
      isStored: outcome.isStored,
      unchanged: found.unchanged,
      prompts: failure === undefined ? listings.get('prompt')?.size : undefined,
      transitions: transitions.length,
      changed: changes.size > 0,
    };
    if (run.endsPause === true && failure === undefined) {
      const { lastPollAt: since } = memory.health;
      const moved = { since, at: found.at, transitions: transitions.length };
      emit({ type: 'project.resumed', project: id, ...moved });
    }
    memory.health = health;
    // A refused poll is repeated: anomalies of a poll that ended are counted once.
    this.#emitAnomalies(id, found.anomalies, memory);
    await this.#emitChanges(id, changes, outcome);
    emit(finished);
    return finished;
  }

  /** Reads the listings of a project and compares them with the known records, which are garbage when it resolves. */
  async #find(
    project: PolledProject,
    run: PollRun,
    memory: ProjectMemory,
    held: DisposableStack,
  ): Promise<Findings | undefined> {
    const { service, clock } = this.#options;
    const { listings } = memory;
    const readings = await this.#read(project, run, memory);
    if (readings === undefined) return undefined;
    const { answers, errors } = readings;
    const at = clock.now();
    const anomalies = new Map<Kind, readonly AnomalySummary[]>();
    let [unchanged, recordBytes] = [errors.size === 0, 0];
    for (const [kind, answer] of answers) {
      if (answer.unchanged) anomalies.set(kind, listings.get(kind)?.anomalies ?? []);
      else {
        anomalies.set(kind, answer.listing.anomalies);
        unchanged = false;
        recordBytes += answer.recordBytes;
      }
    }
    held.use(service.storing(recordBytes));
    for (const [kind, { reason, details }] of errors) {
      if (details.anomalies !== undefined) anomalies.set(kind, details.anomalies);
      if (reason === 'invalid_response') distrustEtag(listings, kind);
    }
    const [failure] = errors.values();
    const compared = await this.#compare(project.id, answers, listings, at).catch(asStoreError);
    return { at, failure, unchanged, anomalies, compared };
  }

  /**
   * Requests the listings of a project concurrently. Resolves to undefined if a shutdown aborted the requests, or if the
   * project was unwatched before one went out.
   */
  async #read(
    { id, datasets }: PolledProject,
    run: PollRun,
    memory: ProjectMemory,
  ): Promise<Readings | undefined> {
    const { service, clock, emit, shutdown } = this.#options;
    /** Called when a request gets its turn, which can be long after the start of the poll. */
    const onRequest = () => {
      if (this.#projects.get(id) !== memory) throw new UnwatchedError();
      if (this.#started.has(run)) return;
      this.#started.add(run);
      const lagMs = Math.max(0, clock.now() - run.dueAt);
      emit({ type: 'scheduler.started_poll', project: id, lagMs });
    };
    const { listings, health } = memory;
    const kinds = KINDS.filter((kind) => kind === 'prompt' || datasets);
    const settled = await Promise.allSettled(
      kinds.map((kind) =>
        service.list(id, kind, {
          ...revalidationOf(listings.get(kind), clock.monotonic()),
          isFailing: health.consecutiveFailures > 0,
          onRequest,
          signal: shutdown,
        }),
      ),
    );
    const answers = new Map<Kind, ListingAnswer>();
    const errors = new Map<Kind, ApiError>();
    for (const [index, kind] of kinds.entries()) {
      const result = settled[index];
      if (result?.status === 'fulfilled') answers.set(kind, result.value);
      else if (result?.reason instanceof ApiError) errors.set(kind, result.reason);
      else if (!shutdown.waits.aborted && !(result?.reason instanceof UnwatchedError)) {
        throw result?.reason;
      }
    }
    return answers.size + errors.size < kinds.length ? undefined : { answers, errors };
  }

  /** Compares the listings of a poll with the stored records. @throws {StoreError} */
  async #compare(
    project: string,
    answers: ReadonlyMap<Kind, ListingAnswer>,
    listings: ReadonlyMap<Kind, ListingMemory>,
    at: number,
  ): Promise<Comparison> {
    const { clock, missingAfter } = this.#options;
    const known = await this.#loadAffected(project, answers, listings);
    const changes = new Map<Kind, Changes>();
    const remembered = new Map<Kind, ListingMemory>();
    const limit = missingAfter();
    for (const [kind, answer] of answers) {
      const last = listings.get(kind);
      const before = known?.listings.get(kind);
      let missing = answer.unchanged ? (last?.missing ?? []) : [];
      if (before !== undefined) {
        const shown = answer.unchanged ? LACKING : answer.listing;
        const detected = await compareListing(before, shown, { at, missingAfter: limit });
        ({ missing } = detected);
        const { baseline, records, complete } = detected.changes;
        const canFinish = complete && this.#isFinishing(project, kind);
        if (baseline || records.length > 0 || canFinish) changes.set(kind, detected.changes);
      }
      const listing = memoryOf(answer, last, missing, clock.monotonic());
      if (listing !== undefined) remembered.set(kind, listing);
    }
    return { token: known?.token ?? '', changes, listings: remembered };
  }

  /** Loads the records that the listings can change: all of them only for a listing that was read whole. */
  async #loadAffected(
    project: string,
    answers: ReadonlyMap<Kind, ListingAnswer>,
    listings: ReadonlyMap<Kind, ListingMemory>,
  ): Promise<KnownProject | undefined> {
    const kinds: Kind[] = [];
    const only = new Map<Kind, readonly string[]>();
    for (const [kind, answer] of answers) {
      const { complete = false, missing = [] } = listings.get(kind) ?? {};
      const canChange = missing.length > 0 || this.#isFinishing(project, kind);
      if (answer.unchanged && !(complete && canChange)) continue;
      kinds.push(kind);
      if (answer.unchanged) only.set(kind, missing);
      else if (answer.vanished !== undefined) {
        const { records, idsWithoutStatus } = answer.listing;
        only.set(kind, [...records.keys(), ...idsWithoutStatus, ...answer.vanished, ...missing]);
      }
    }
    return kinds.length === 0
      ? undefined
      : await this.#options.store.loadKnown(project, kinds, only);
  }

  /** Whether a listing of this kind has to be committed even if it changes no record, provided that it is complete. */
  #isFinishing(project: string, kind: Kind): boolean {
    return kind === 'prompt' && this.#options.store.isFinishing(project);
  }

  /**
   * Commits what a poll found, and then remembers its listings. Resolves to undefined if nothing was stored because the
   * project was unwatched, or another process committed a listing first.
   */
  async #commit(
    project: string,
    { at, failure, compared }: Findings,
    memory: ProjectMemory,
    listings: Map<Kind, ListingMemory>,
  ): Promise<Outcome | undefined> {
    const { store, maxIntervalMs } = this.#options;
    const health =
      failure === undefined
        ? afterSuccess(memory.health, at, maxIntervalMs(project))
        : afterFailure(memory.health, at, failure);
    try {
      if (compared instanceof StoreError) throw compared;
      // The project was unwatched or taken over anew: the store may be newer than these findings.
      if (this.#projects.get(project) !== memory) return undefined;
      const committed = await store.commitPoll(toCommit(project, at, health, compared));
      if (committed === undefined) {
        listings.clear();
        return undefined;
      }
      for (const [kind, listing] of compared.listings) {
        const last = listings.get(kind)?.table;
        listings.set(kind, listing);
        if (last !== listing.table) last?.free?.();
      }
      return { health, failure, isStored: true, changes: compared.changes, ...committed };
    } catch (error) {
      const { message } = asStoreError(error);
      if (this.#projects.get(project) !== memory) return undefined;
      markNotStored(listings);
      const reported = failure ?? { reason: 'store', message, details: {} };
      const failed = afterFailure(memory.health, at, reported);
      // Other workers and commands see it only in the store.
      store.keepHealth(project, failed);
      return {
        health: failed,
        failure: reported,
        isStored: false,
        changes: new Map(),
        transitions: [],
        finishes: [],
      };
    }
  }

  /** Emits the anomalies of a poll and remembers them. */
  #emitAnomalies(project: string, anomalies: Findings['anomalies'], memory: ProjectMemory): void {
    for (const [kind, summaries] of anomalies) {
      const before = memory.anomalies.get(kind) ?? [];
      for (const { reason, count, indexes } of summaries) {
        const changed = !before.some((other) => other.reason === reason && other.count === count);
        const anomaly = { project, kind, reason, count, indexes, changed };
        this.#options.emit({ type: 'items.anomalous', ...anomaly });
      }
      memory.anomalies.set(kind, summaries);
    }
  }

  /** Emits the changes of a commit: baselines, transitions, records that are gone, and experiments that finished. */
  async #emitChanges(
    project: string,
    changes: ReadonlyMap<Kind, Changes>,
    { transitions, finishes }: Committed,
  ): Promise<void> {
    const { emit } = this.#options;
    for (const [kind, { baseline, summary }] of changes) {
      const counts = Object.fromEntries(summary.counts);
      if (baseline) emit({ type: 'listing.baseline', project, kind, counts });
    }
    const emitTransition = (transition: CommittedTransition) =>
      emit({ type: 'record.transition', project, transition });
    await inTurns(transitions, emitTransition, EVENTS_PER_TURN);
    for (const [kind, { gone }] of changes) {
      await inTurns(
        gone,
        (record) => emit({ type: 'record.gone', project, kind, record }),
        EVENTS_PER_TURN,
      );
    }
    const emitFinish = (finish: FinishRow) => emit({ type: 'experiment.finished', finish });
    await inTurns(finishes, emitFinish, EVENTS_PER_TURN);
  }
}

function newMemory(health: PollHealth): ProjectMemory {
  return { health, listings: new Map(), anomalies: new Map() };
}

function toCommit(
  project: string,
  at: number,
  health: PollHealth,
  { token, changes }: Comparison,
): PollCommit {
  // While the datasets of a project fail, nothing says since when its polls are steady.
  const transitions = health.up ? (changes.get('prompt')?.transitions ?? []) : [];
  const durations = countDurations(transitions, at, health.steadySince);
  return { project, at, health, token, listings: changes, durations };
}

/** Returns an error of the store; throws any other. */
function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  throw error;
}

import type { AnomalySummary } from '../domain/record.ts';
import type { Kind } from '../domain/status.ts';
import type { Changes } from '../domain/transition.ts';
import { createComparison, type Comparison } from './comparison.ts';
import { emitChanges } from './emit-changes.ts';
import { type ApiError, StoreError } from './errors.ts';
import type { FinishedPoll, Observer, PollFailure } from './events.ts';
import { afterAnswer, type ListingMemory } from './listing-memory.ts';
import { afterPoll, NEVER_POLLED } from './poll-health.ts';
import { createReadListings, type PolledProject, type PollRun, type Reading } from './reading.ts';
import { takeSteps } from './steps.ts';
import type { Clock } from './ports/clock.ts';
import type { EvaluationService } from './ports/service.ts';
import type { Shutdown } from './ports/shutdown.ts';
import type { CommittedTransition, PollHealth, Store } from './ports/store.ts';

export interface Poller {
  /**
   * Polls a project once: fetch, compare, commit, then emit. Resolves with undefined if the poll had no effect: a shutdown
   * aborted it, the project was unwatched meanwhile, or another process committed a listing first, so that the poll has to
   * be repeated. Failures of the service or the store do not reject.
   */
  poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined>;
  /**
   * Starts watching a project with this health, undefined if it was never polled. Drops the memory of its listings, and a
   * running poll commits nothing: another process may have polled the project meanwhile.
   */
  watch(project: string, health: PollHealth | undefined): void;
  /** Stops watching a project. A running poll of it commits nothing. */
  unwatch(project: string): void;
  /** Drops the memory of all listings, as another service answers from now on. */
  dropListings(): void;
  health(project: string): PollHealth;
}

export interface PollerOptions {
  readonly service: Pick<EvaluationService, 'list'>;
  readonly store: Pick<Store, 'loadKnown' | 'commitPoll'>;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Read at each poll, as it can change at run time. */
  readonly missingAfter: () => number;
  readonly shutdown: Shutdown;
}

type ListingMemories = Map<Kind, ListingMemory>;

interface ProjectState {
  health: PollHealth;
  /** Replaced, not cleared, when another service answers: a running poll then keeps what it compares with. */
  memory: ListingMemories;
  /** Anomalies of the last listing, committed or not. Only anomalies that differ from them are logged. */
  readonly anomalies: Map<Kind, readonly AnomalySummary[]>;
}

/** Result of the reading half of a poll. */
interface PollReading {
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

interface Outcome {
  readonly health: PollHealth;
  readonly failure: PollFailure | undefined;
  readonly changes: ReadonlyMap<Kind, Changes>;
  readonly transitions: readonly CommittedTransition[];
}

/** Creates the poller, which alone decides the order of a poll's steps (docs/specification.md#commits). */
export function createPoller(options: PollerOptions): Poller {
  const { service, store, clock, emit, missingAfter, shutdown } = options;
  const readListings = createReadListings({ service, clock, emit, shutdown });
  const compare = createComparison({ store, missingAfter });
  const states = new Map<string, ProjectState>();

  function stateOf(project: string): ProjectState {
    let state = states.get(project);
    if (state === undefined) {
      state = { health: NEVER_POLLED, memory: new Map(), anomalies: new Map() };
      states.set(project, state);
    }
    return state;
  }

  async function poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined> {
    const started = clock.monotonic();
    const state = stateOf(project.id);
    const { memory } = state;
    const reading = await readAndCompare(project, run, state);
    if (reading === undefined) return undefined;

    const before = state.health;
    const outcome = await commit(project.id, reading, state, memory);
    if (outcome === undefined) return undefined;
    state.health = outcome.health;
    const finished: FinishedPoll = {
      type: 'poll.finished',
      project: project.id,
      durationMs: clock.monotonic() - started,
      health: outcome.health,
      failuresBefore: before.consecutiveFailures,
      failure: outcome.failure,
      unchanged: reading.unchanged,
      prompts: outcome.failure === undefined ? memory.get('prompt')?.size : undefined,
      transitions: outcome.transitions.length,
      changed: outcome.changes.size > 0,
    };
    emitAnomalies(project.id, reading.anomalies, state);
    await takeSteps(emitChanges(emit, { project: project.id, ...outcome }));
    emit(finished);
    return finished;
  }

  /**
   * Reads the listings and compares them. Its result holds only the differences and the store's token, so the other records
   * can be collected.
   */
  async function readAndCompare(
    project: PolledProject,
    run: PollRun,
    { health, memory }: ProjectState,
  ): Promise<PollReading | undefined> {
    const readings = await readListings(project, {
      run,
      isFailing: health.consecutiveFailures > 0,
      memory,
    });
    if (readings === undefined) return undefined;
    const at = clock.now();
    const failed = readings.find((reading) => 'error' in reading);
    const failure = failed === undefined ? undefined : toPollFailure(failed.error);
    const unchanged = readings.every((each) => 'answer' in each && each.answer.unchanged);
    const anomalies = anomaliesOf(readings, memory);
    for (const reading of readings) distrustEtagIfInvalid(reading, memory);
    try {
      const compared = await compare(project.id, readings, memory, at);
      return { at, failure, unchanged, anomalies, compared };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { at, failure, unchanged, anomalies, compared: error };
    }
  }

  async function commit(
    project: string,
    { at, failure, compared }: PollReading,
    state: ProjectState,
    memory: ListingMemories,
  ): Promise<Outcome | undefined> {
    const health = afterPoll(state.health, failure, at);
    try {
      if (compared instanceof StoreError) throw compared;
      const { version, token, changes: listings } = compared;
      // The project was unwatched or taken over anew: the store may be newer than this reading.
      if (states.get(project) !== state) return undefined;
      const transitions = await store.commitPoll({ project, at, health, version, token, listings });
      if (transitions === undefined) {
        memory.clear();
        return undefined;
      }
      remember(compared.answers, memory);
      return { health, failure, changes: listings, transitions };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (states.get(project) !== state) return undefined;
      for (const [kind, listing] of memory) memory.set(kind, { ...listing, isStored: false });
      const storeFailure: PollFailure = { reason: 'store', message: error.message, details: {} };
      const reported = failure ?? storeFailure;
      return {
        health: afterPoll(state.health, reported, at),
        failure: reported,
        changes: new Map(),
        transitions: [],
      };
    }
  }

  /** Called only after the commit: a body whose changes were not stored must not count as known. */
  function remember(answers: Comparison['answers'], memory: ListingMemories): void {
    for (const [kind, { summary, missing }] of answers) {
      const listing = afterAnswer(memory.get(kind), summary, missing, clock);
      if (listing !== undefined) memory.set(kind, listing);
    }
  }

  function distrustEtagIfInvalid(reading: Reading, memory: ListingMemories): void {
    const listing = memory.get(reading.kind);
    if (listing === undefined || !('error' in reading)) return;
    if (reading.error.reason === 'invalid_response') {
      memory.set(reading.kind, { ...listing, isEtagTrusted: false });
    }
  }

  /** Called only when the poll has ended: a refused poll is repeated and would count the anomalies twice. */
  function emitAnomalies(
    project: string,
    anomalies: PollReading['anomalies'],
    state: ProjectState,
  ): void {
    for (const [kind, summaries] of anomalies) {
      const before = state.anomalies.get(kind) ?? [];
      for (const { reason, count, indexes, digest } of summaries) {
        const changed = !before.some((other) => other.reason === reason && other.digest === digest);
        emit({ type: 'items.anomalous', project, kind, reason, count, indexes, changed });
      }
      state.anomalies.set(kind, summaries);
    }
  }

  return {
    poll,
    watch: (project, health = NEVER_POLLED) => {
      states.set(project, { health, memory: new Map(), anomalies: new Map() });
    },
    unwatch: (project) => {
      states.delete(project);
    },
    dropListings: () => {
      for (const state of states.values()) state.memory = new Map();
    },
    health: (project) => states.get(project)?.health ?? NEVER_POLLED,
  };
}

function toPollFailure(error: ApiError): PollFailure {
  return { reason: error.reason, message: error.message, details: error.details };
}

function anomaliesOf(
  readings: readonly Reading[],
  memory: ReadonlyMap<Kind, ListingMemory>,
): PollReading['anomalies'] {
  const anomalies = new Map<Kind, readonly AnomalySummary[]>();
  for (const reading of readings) {
    const found = anomaliesIn(reading, memory.get(reading.kind));
    if (found !== undefined) anomalies.set(reading.kind, found);
  }
  return anomalies;
}

/** Returns the anomalies of a listing; undefined if there was no listing. */
function anomaliesIn(
  reading: Reading,
  memory: ListingMemory | undefined,
): readonly AnomalySummary[] | undefined {
  if ('answer' in reading) {
    const { answer } = reading;
    return answer.unchanged ? (memory?.anomalies ?? []) : answer.listing.anomalies;
  }
  return reading.error.details.anomalies;
}

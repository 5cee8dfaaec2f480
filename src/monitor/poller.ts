import { countDurations } from '../domain/limits.ts';
import type { AnomalySummary } from '../domain/record.ts';
import type { Kind } from '../domain/status.ts';
import type { Changes } from '../domain/transition.ts';
import { createComparison, type Comparison } from './comparison.ts';
import { type Anomalies, emitAnomalies, emitChanges } from './emit-changes.ts';
import { type ApiError, StoreError } from './errors.ts';
import type { FinishedPoll, Observer, PollFailure } from './events.ts';
import {
  distrustEtag,
  markNotStored,
  updateMemory,
  type ListingMemories,
  type ListingMemory,
} from './listing-memory.ts';
import { afterPoll, type EndedPoll, NEVER_POLLED } from './poll-health.ts';
import { createReadListings, type PolledProject, type PollRun, type Reading } from './reading.ts';
import { takeSteps } from './steps.ts';
import type { Clock } from './ports/clock.ts';
import type { EvaluationService } from './ports/service.ts';
import type { Shutdown } from './ports/shutdown.ts';
import type { CommittedTransition, PollCommit, PollHealth, Store } from './ports/store.ts';

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
  /**
   * Stops watching a project. A running poll of it commits nothing, and one that waits to send its first request sends none.
   */
  unwatch(project: string): void;
  /** Drops the memory of all listings. Called when the service was replaced. */
  dropListings(): void;
  health(project: string): PollHealth;
}

export interface PollerOptions {
  readonly service: Pick<EvaluationService, 'list' | 'storing'>;
  readonly store: Pick<Store, 'loadKnown' | 'commitPoll'>;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Read at each poll, as it can change at run time. */
  readonly missingAfter: () => number;
  /** Returns the longest interval of a project's schedule, ms. */
  readonly maxIntervalMs: (project: string) => number;
  readonly shutdown: Shutdown;
}

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
  readonly anomalies: Anomalies;
  /** Comparison with the known records, or why the store could not load them. */
  readonly compared: Comparison | StoreError;
}

interface Outcome {
  readonly health: PollHealth;
  readonly failure: PollFailure | undefined;
  readonly isStored: boolean;
  readonly changes: ReadonlyMap<Kind, Changes>;
  readonly transitions: readonly CommittedTransition[];
}

/** Creates the poller, which alone decides the order of a poll's steps (docs/specification.md#commits). */
export function createPoller(options: PollerOptions): Poller {
  const { service, store, clock, emit, missingAfter, maxIntervalMs, shutdown } = options;
  const readListings = createReadListings({ service, clock, emit, shutdown });
  const compare = createComparison({ store, missingAfter });
  const states = new Map<string, ProjectState>();

  function stateOf(project: string): ProjectState {
    const state = states.get(project) ?? newState(NEVER_POLLED);
    states.set(project, state);
    return state;
  }

  async function poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined> {
    const started = clock.monotonic();
    const state = stateOf(project.id);
    const { memory } = state;
    using held = new DisposableStack();
    const reading = await readAndCompare(project, run, state, held);
    if (reading === undefined) return undefined;

    const outcome = await commit(project.id, reading, state, memory);
    if (outcome === undefined) return undefined;
    const { consecutiveFailures: failuresBefore } = state.health;
    state.health = outcome.health;
    const finished: FinishedPoll = {
      type: 'poll.finished',
      project: project.id,
      durationMs: clock.monotonic() - started,
      health: outcome.health,
      failuresBefore,
      failure: outcome.failure,
      isStored: outcome.isStored,
      unchanged: reading.unchanged,
      prompts: outcome.failure === undefined ? memory.get('prompt')?.size : undefined,
      transitions: outcome.transitions.length,
      changed: outcome.changes.size > 0,
    };
    // A refused poll is repeated: anomalies of a poll that ended are counted once.
    emitAnomalies(emit, project.id, reading.anomalies, state.anomalies);
    await takeSteps(emitChanges(emit, { project: project.id, ...outcome }));
    emit(finished);
    return finished;
  }

  /**
   * Reads the listings and compares them. The result holds only the differences and the store's token, so that the other
   * records can be garbage-collected.
   */
  async function readAndCompare(
    project: PolledProject,
    run: PollRun,
    state: ProjectState,
    held: DisposableStack,
  ): Promise<PollReading | undefined> {
    const { health, memory } = state;
    const readings = await readListings(project, {
      run,
      isFailing: health.consecutiveFailures > 0,
      isWatched: () => states.get(project.id) === state,
      memory,
    });
    if (readings === undefined) return undefined;
    held.use(service.storing(recordBytesOf(readings)));
    const at = clock.now();
    const failed = readings.find((reading) => 'error' in reading);
    const failure = failed === undefined ? undefined : toPollFailure(failed.error);
    const unchanged = readings.every((each) => 'answer' in each && each.answer.unchanged);
    const anomalies = anomaliesOf(readings, memory);
    for (const reading of readings) if (isInvalid(reading)) distrustEtag(memory, reading.kind);
    const compared = await compare(project.id, readings, memory, at).catch(asStoreError);
    return { at, failure, unchanged, anomalies, compared };
  }

  async function commit(
    project: string,
    { at, failure, compared }: PollReading,
    state: ProjectState,
    memory: ListingMemories,
  ): Promise<Outcome | undefined> {
    const ended = { at, maxIntervalMs: maxIntervalMs(project) };
    const health = afterPoll(state.health, { ...ended, failure });
    try {
      if (compared instanceof StoreError) throw compared;
      // The project was unwatched or taken over anew: the store may be newer than this reading.
      if (states.get(project) !== state) return undefined;
      const transitions = await store.commitPoll(toCommit(project, at, health, compared));
      if (transitions === undefined) {
        memory.clear();
        return undefined;
      }
      updateMemory(memory, compared.answers, clock);
      return { health, failure, isStored: true, changes: compared.changes, transitions };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (states.get(project) !== state) return undefined;
      markNotStored(memory);
      return failedOutcome(state.health, { ...ended, failure: failure ?? toStoreFailure(error) });
    }
  }

  return {
    poll,
    watch: (project, health = NEVER_POLLED) => {
      states.set(project, newState(health));
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

function newState(health: PollHealth): ProjectState {
  return { health, memory: new Map(), anomalies: new Map() };
}

function recordBytesOf(readings: readonly Reading[]): number {
  return readings.reduce(
    (sum, each) => sum + ('answer' in each && !each.answer.unchanged ? each.answer.recordBytes : 0),
    0,
  );
}

function isInvalid(reading: Reading): boolean {
  return 'error' in reading && reading.error.reason === 'invalid_response';
}

/** Returns an error of the store; throws any other. */
function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  throw error;
}

function toCommit(
  project: string,
  at: number,
  health: PollHealth,
  { version, token, changes }: Comparison,
): PollCommit {
  // While the datasets of a project fail, nothing says since when its polls are steady.
  const transitions = health.up ? (changes.get('prompt')?.transitions ?? []) : [];
  const durations = countDurations(transitions, at, health.steadySince);
  return { project, at, health, version, token, listings: changes, durations };
}

/** Returns the outcome of a poll whose commit failed. */
function failedOutcome(
  before: PollHealth,
  ended: EndedPoll & { readonly failure: PollFailure },
): Outcome {
  const { failure } = ended;
  const health = afterPoll(before, ended);
  return { health, failure, isStored: false, changes: new Map(), transitions: [] };
}

function toStoreFailure(error: StoreError): PollFailure {
  return { reason: 'store', message: error.message, details: {} };
}

function toPollFailure(error: ApiError): PollFailure {
  return { reason: error.reason, message: error.message, details: error.details };
}

function anomaliesOf(
  readings: readonly Reading[],
  memory: ReadonlyMap<Kind, ListingMemory>,
): Anomalies {
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

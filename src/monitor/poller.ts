import { KINDS, type Kind, type Status } from '../domain/status.ts';
import {
  countMissing,
  detectChanges,
  detectRepeatedAbsence,
  type Changes,
} from '../domain/transition.ts';
import { isNews, summarize, type AnomalySummary } from './anomaly-memory.ts';
import { ApiError, StoreError } from './errors.ts';
import type { MonitorEvent, Observer, PollFailure } from './events.ts';
import type {
  Clock,
  CommittedTransition,
  EvaluationService,
  KnownProject,
  ListingAnswer,
  PollHealth,
  Shutdown,
  Store,
  Validator,
} from './ports.ts';

/** A 304 is not trusted for longer than this without a full answer in between (contract 4, Fetching). */
const LONGEST_TRUST_MS = 60 * 60 * 1000;

/** A project as the poller needs it. */
export interface PolledProject {
  readonly id: string;
  readonly datasets: boolean;
}

/** One run of a project's schedule. */
export interface PollRun {
  /** When it was due, epoch ms. */
  readonly dueAt: number;
  /** When the next one comes, epoch ms; undefined if none will. */
  readonly nextAt: number | undefined;
}

export type FinishedPoll = Extract<MonitorEvent, { type: 'poll.finished' }>;

export interface Poller {
  /**
   * Polls a project once: fetch, detect, commit, then tell. Resolves with undefined when the poll was cut short by a
   * shutdown: it then changed nothing. Never rejects for what the service or the store did.
   */
  poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined>;
  /** Takes a project's health over from the store. */
  watch(project: string, health: PollHealth): void;
  /** Forgets a project that is no longer configured. */
  forget(project: string): void;
  health(project: string): PollHealth | undefined;
}

export interface PollerOptions {
  readonly service: Pick<EvaluationService, 'list'>;
  readonly store: Pick<Store, 'loadKnown' | 'commitPoll'>;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly missingAfter: number;
  readonly shutdown: Shutdown;
}

/** What is remembered of the last committed listing of one kind, to recognise it when it comes again. */
interface ListingMemory {
  readonly validator: Validator;
  readonly complete: boolean;
  /** Records in it. */
  readonly size: number;
  /** Records that it lacked and that are not gone. */
  readonly missing: number;
  /** Monotonic time of the last full answer. */
  readonly fullAt: number;
}

interface ProjectState {
  health: PollHealth;
  readonly listings: Map<Kind, ListingMemory>;
  readonly anomalies: Map<Kind, readonly AnomalySummary[]>;
}

/** One listing of a poll: what the service answered, or why it did not. */
type Reading =
  | { readonly kind: Kind; readonly answer: ListingAnswer }
  | { readonly kind: Kind; readonly error: ApiError };

/** Polls projects (contract 4): the one place where a poll's steps follow each other. */
export function createPoller(options: PollerOptions): Poller {
  const { service, store, clock, emit, missingAfter, shutdown } = options;
  const states = new Map<string, ProjectState>();

  function stateOf(project: string): ProjectState {
    let state = states.get(project);
    if (state === undefined) {
      state = { health: NEVER_POLLED, listings: new Map(), anomalies: new Map() };
      states.set(project, state);
    }
    return state;
  }

  async function poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined> {
    const started = clock.monotonic();
    const state = stateOf(project.id);
    const readings = await readListings(project, run, state);
    if (readings === undefined) return undefined;
    for (const reading of readings) tellAnomalies(project.id, reading, state);

    const before = state.health;
    const outcome = await commit(project.id, readings, state);
    state.health = outcome.health;
    const finished: FinishedPoll = {
      type: 'poll.finished',
      project: project.id,
      durationMs: clock.monotonic() - started,
      health: outcome.health,
      failuresBefore: before.consecutiveFailures,
      failure: outcome.failure,
      unchanged: readings.every((reading) => 'answer' in reading && reading.answer.unchanged),
      prompts: outcome.failure === undefined ? state.listings.get('prompt')?.size : undefined,
      transitions: outcome.transitions.length,
      changed: outcome.changes.size > 0,
    };
    tellChanges(project.id, outcome);
    emit(finished);
    return finished;
  }

  async function readListings(
    project: PolledProject,
    run: PollRun,
    state: ProjectState,
  ): Promise<readonly Reading[] | undefined> {
    let sent = false;
    const onFirstRequest = () => {
      if (sent) return;
      sent = true;
      const lagMs = Math.max(0, clock.now() - run.dueAt);
      emit({ type: 'scheduler.started_poll', project: project.id, lagMs });
    };
    const read = async (kind: Kind): Promise<Reading> => {
      const memory = state.listings.get(kind);
      try {
        const answer = await service.list(project.id, kind, {
          previous: memory?.validator,
          revalidate: memory !== undefined && mayTrust(memory, run),
          inTrouble: state.health.consecutiveFailures > 0,
          onFirstRequest,
          signal: shutdown,
        });
        return { kind, answer };
      } catch (error) {
        if (error instanceof ApiError) return { kind, error };
        throw error;
      }
    };
    const kinds = KINDS.filter((kind) => kind === 'prompt' || project.datasets);
    const settled = await Promise.allSettled(kinds.map((kind) => read(kind)));
    if (shutdown.waits.aborted && settled.some((result) => result.status === 'rejected')) {
      return undefined;
    }
    return settled.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  }

  function mayTrust(memory: ListingMemory, run: PollRun): boolean {
    if (run.nextAt === undefined) return false;
    const untilNext = run.nextAt - clock.now();
    return clock.monotonic() + untilNext - memory.fullAt <= LONGEST_TRUST_MS;
  }

  interface Outcome {
    readonly health: PollHealth;
    readonly failure: PollFailure | undefined;
    readonly changes: ReadonlyMap<Kind, Changes>;
    readonly transitions: readonly CommittedTransition[];
  }

  async function commit(
    project: string,
    readings: readonly Reading[],
    state: ProjectState,
  ): Promise<Outcome> {
    const at = clock.now();
    const failed = readings.find((reading) => 'error' in reading);
    const failure = failed === undefined ? undefined : describe(failed.error);
    const health = nextHealth(state.health, failure, at);
    for (const reading of readings) forgetEtagAfterNonsense(reading, state);
    try {
      const known = await loadWhatIsNeeded(project, readings, state);
      const changes = detect(readings, known, state, at);
      const stored = new Map([...changes].filter(([, change]) => isWorthStoring(change)));
      const version = known?.version ?? 0;
      const commitment = { project, at, health, version, listings: stored };
      const transitions = await store.commitPoll(commitment);
      if (transitions === undefined) {
        throw new StoreError('other', 'another process committed this project at the same time');
      }
      remember(readings, changes, known, state);
      return { health, failure, changes: stored, transitions };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      const storeFailure: PollFailure = { reason: 'store', message: error.message, details: {} };
      const reported = failure ?? storeFailure;
      return {
        health: nextHealth(state.health, reported, at),
        failure: reported,
        changes: new Map(),
        transitions: [],
      };
    }
  }

  async function loadWhatIsNeeded(
    project: string,
    readings: readonly Reading[],
    state: ProjectState,
  ): Promise<KnownProject | undefined> {
    const kinds = readings
      .filter(
        (reading) =>
          'answer' in reading &&
          (!reading.answer.unchanged || (state.listings.get(reading.kind)?.missing ?? 0) > 0),
      )
      .map((reading) => reading.kind);
    return kinds.length === 0 ? undefined : await store.loadKnown(project, kinds);
  }

  function detect(
    readings: readonly Reading[],
    known: KnownProject | undefined,
    state: ProjectState,
    at: number,
  ): ReadonlyMap<Kind, Changes> {
    const changes = new Map<Kind, Changes>();
    for (const reading of readings) {
      const before = known?.listings.get(reading.kind);
      if ('error' in reading || before === undefined) continue;
      const complete = state.listings.get(reading.kind)?.complete ?? false;
      changes.set(
        reading.kind,
        reading.answer.unchanged
          ? detectRepeatedAbsence(before, complete, missingAfter)
          : detectChanges(before, reading.answer.listing, { at, missingAfter }),
      );
    }
    return changes;
  }

  /** Only after the commit: a body whose changes were not stored must not be taken for a known one. */
  function remember(
    readings: readonly Reading[],
    changes: ReadonlyMap<Kind, Changes>,
    known: KnownProject | undefined,
    state: ProjectState,
  ): void {
    for (const reading of readings) {
      if ('error' in reading) continue;
      const { kind, answer } = reading;
      const memory = state.listings.get(kind);
      const change = changes.get(kind);
      const before = known?.listings.get(kind);
      const missing =
        change === undefined || before === undefined ? 0 : countMissing(before, change);
      if (!answer.unchanged) {
        const { listing, validator } = answer;
        const size = listing.records.size;
        const fullAt = clock.monotonic();
        state.listings.set(kind, { validator, complete: listing.complete, size, missing, fullAt });
      } else if (memory !== undefined) {
        const fullAt = answer.full ? clock.monotonic() : memory.fullAt;
        const validator = answer.validator ?? memory.validator;
        state.listings.set(kind, { ...memory, validator, missing, fullAt });
      }
    }
  }

  function forgetEtagAfterNonsense(reading: Reading, state: ProjectState): void {
    const memory = state.listings.get(reading.kind);
    if (memory === undefined || !('error' in reading)) return;
    if (reading.error.reason !== 'invalid_response') return;
    const validator = { ...memory.validator, etag: undefined };
    state.listings.set(reading.kind, { ...memory, validator });
  }

  function tellAnomalies(project: string, reading: Reading, state: ProjectState): void {
    const { kind } = reading;
    const before = state.anomalies.get(kind) ?? [];
    const anomalies = anomaliesOf(reading);
    const summaries = anomalies === undefined ? before : summarize(anomalies);
    const isListing = 'answer' in reading || anomalies !== undefined;
    if (!isListing) return;
    for (const summary of summaries) {
      const { reason, count, indexes } = summary;
      const changed = isNews(summary, before);
      emit({ type: 'items.anomalous', project, kind, reason, count, indexes, changed });
    }
    state.anomalies.set(kind, summaries);
  }

  function tellChanges(project: string, { changes, transitions }: Outcome): void {
    for (const [kind, { baseline, records }] of changes) {
      if (!baseline) continue;
      const counts: Partial<Record<Status, number>> = {};
      for (const { status } of records) counts[status] = (counts[status] ?? 0) + 1;
      emit({ type: 'listing.baseline', project, kind, counts });
    }
    for (const transition of transitions) emit({ type: 'record.transition', project, transition });
    for (const [kind, { gone }] of changes) {
      for (const record of gone) emit({ type: 'record.gone', project, kind, record });
    }
  }

  return {
    poll,
    watch: (project, health) => {
      stateOf(project).health = health;
    },
    forget: (project) => {
      states.delete(project);
    },
    health: (project) => states.get(project)?.health,
  };
}

const NEVER_POLLED: PollHealth = {
  up: false,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: undefined,
  lastSuccessAt: undefined,
};

function nextHealth(before: PollHealth, failure: PollFailure | undefined, at: number): PollHealth {
  return failure === undefined
    ? { up: true, consecutiveFailures: 0, reason: undefined, lastPollAt: at, lastSuccessAt: at }
    : {
        up: false,
        consecutiveFailures: before.consecutiveFailures + 1,
        reason: failure.reason,
        lastPollAt: at,
        lastSuccessAt: before.lastSuccessAt,
      };
}

function describe(error: ApiError): PollFailure {
  return { reason: error.reason, message: error.message, details: error.details };
}

function isWorthStoring(changes: Changes): boolean {
  return changes.baseline || changes.records.length > 0;
}

/** Undefined when there is no new listing to speak of. */
function anomaliesOf(reading: Reading) {
  if ('error' in reading) return reading.error.details.anomalies;
  return reading.answer.unchanged ? undefined : reading.answer.listing.anomalies;
}

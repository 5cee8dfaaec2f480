import type { Kind, Status } from '../domain/status.ts';
import {
  detectChanges,
  detectRepeatedAbsence,
  missingIds,
  type Changes,
} from '../domain/transition.ts';
import { isNews, summarize, type AnomalySummary } from './anomaly-memory.ts';
import { type ApiError, StoreError } from './errors.ts';
import type { FinishedPoll, Observer, PollFailure } from './events.ts';
import { afterAnswer, withoutEtag, withoutItems, type ListingMemory } from './listing-memory.ts';
import { afterPoll, NEVER_POLLED } from './poll-health.ts';
import { createReading, type PolledProject, type PollRun, type Reading } from './reading.ts';
import type {
  Clock,
  CommittedTransition,
  EvaluationService,
  KnownProject,
  PollHealth,
  Shutdown,
  Store,
} from './ports.ts';

export interface Poller {
  /**
   * Polls a project once: fetch, detect, commit, then tell. Resolves with undefined when the poll changed nothing: it was
   * cut short by a shutdown, the project was forgotten meanwhile, or somebody else has committed it since, and it has to
   * be polled again. Never rejects for what the service or the store did.
   */
  poll(project: PolledProject, run: PollRun): Promise<FinishedPoll | undefined>;
  /**
   * Takes a project over, with its health from the store; undefined if it was never polled. Nothing is recognised of what
   * it brought before, and a poll that is under way changes nothing any more: somebody else may have polled it meanwhile.
   */
  watch(project: string, health: PollHealth | undefined): void;
  /** Forgets a project that is no longer polled here: a poll that runs commits nothing any more. */
  forget(project: string): void;
  /** Recognises no listing any more: another service answers from now on. */
  forgetListings(): void;
  health(project: string): PollHealth;
}

export interface PollerOptions {
  readonly service: Pick<EvaluationService, 'list'>;
  readonly store: Pick<Store, 'loadKnown' | 'commitPoll'>;
  readonly clock: Clock;
  readonly emit: Observer;
  /** Asked at each poll, as it can change at run time. */
  readonly missingAfter: () => number;
  readonly shutdown: Shutdown;
}

interface ProjectState {
  health: PollHealth;
  readonly listings: Map<Kind, ListingMemory>;
  /** Of the last listing, committed or not: what is logged is what differs from them. */
  readonly anomalies: Map<Kind, readonly AnomalySummary[]>;
}

/** Polls projects (contract 4): the one place where a poll's steps follow each other. */
export function createPoller(options: PollerOptions): Poller {
  const { service, store, clock, emit, missingAfter, shutdown } = options;
  const readListings = createReading({ service, clock, emit, shutdown });
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
    const readings = await readListings(project, {
      run,
      inTrouble: state.health.consecutiveFailures > 0,
      memory: state.listings,
    });
    if (readings === undefined) return undefined;
    for (const reading of readings) tellAnomalies(project.id, reading, state);

    const before = state.health;
    const outcome = await commit(project.id, readings, state);
    if (outcome === undefined) return undefined;
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
  ): Promise<Outcome | undefined> {
    const at = clock.now();
    const failed = readings.find((reading) => 'error' in reading);
    const failure = failed === undefined ? undefined : describe(failed.error);
    const health = afterPoll(state.health, failure?.reason, at);
    for (const reading of readings) forgetEtagAfterNonsense(reading, state);
    try {
      const known = await loadWhatIsNeeded(project, readings, state);
      const changes = detect(readings, known, state, at);
      const stored = new Map([...changes].filter(([, change]) => isWorthStoring(change)));
      const version = known?.version ?? 0;
      const commitment = { project, at, health, version, listings: stored };
      // What was read before may be older than what is stored by now.
      if (states.get(project) !== state) return undefined;
      const transitions = await store.commitPoll(commitment);
      if (transitions === undefined) {
        state.listings.clear();
        return undefined;
      }
      remember(readings, changes, known, state);
      return { health, failure, changes: stored, transitions };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (states.get(project) !== state) return undefined;
      for (const [kind, memory] of state.listings) state.listings.set(kind, withoutItems(memory));
      const storeFailure: PollFailure = { reason: 'store', message: error.message, details: {} };
      const reported = failure ?? storeFailure;
      return {
        health: afterPoll(state.health, reported.reason, at),
        failure: reported,
        changes: new Map(),
        transitions: [],
      };
    }
  }

  /** Of a listing that is the same as the last one, or of which only the difference was read, no more than has a part in it. */
  async function loadWhatIsNeeded(
    project: string,
    readings: readonly Reading[],
    state: ProjectState,
  ): Promise<KnownProject | undefined> {
    const kinds: Kind[] = [];
    const only = new Map<Kind, readonly string[]>();
    for (const reading of readings) {
      if ('error' in reading) continue;
      const { kind, answer } = reading;
      const missing = state.listings.get(kind)?.missing ?? [];
      if (answer.unchanged && missing.length === 0) continue;
      kinds.push(kind);
      if (answer.unchanged) only.set(kind, missing);
      else if (answer.vanished !== undefined) {
        only.set(kind, [...answer.listing.records.keys(), ...answer.vanished, ...missing]);
      }
    }
    return kinds.length === 0 ? undefined : await store.loadKnown(project, kinds, only);
  }

  function detect(
    readings: readonly Reading[],
    known: KnownProject | undefined,
    state: ProjectState,
    at: number,
  ): ReadonlyMap<Kind, Changes> {
    const changes = new Map<Kind, Changes>();
    const patience = missingAfter();
    for (const reading of readings) {
      const before = known?.listings.get(reading.kind);
      if ('error' in reading || before === undefined) continue;
      const complete = state.listings.get(reading.kind)?.complete ?? false;
      changes.set(
        reading.kind,
        reading.answer.unchanged
          ? detectRepeatedAbsence(before, complete, patience)
          : detectChanges(before, reading.answer.listing, { at, missingAfter: patience }),
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
      const change = changes.get(kind);
      const before = known?.listings.get(kind);
      const missing = change && before ? missingIds(before, change) : [];
      const memory = afterAnswer(state.listings.get(kind), answer, missing, clock);
      if (memory !== undefined) state.listings.set(kind, memory);
    }
  }

  function forgetEtagAfterNonsense(reading: Reading, state: ProjectState): void {
    const memory = state.listings.get(reading.kind);
    if (memory === undefined || !('error' in reading)) return;
    if (reading.error.reason === 'invalid_response') {
      state.listings.set(reading.kind, withoutEtag(memory));
    }
  }

  function tellAnomalies(project: string, reading: Reading, state: ProjectState): void {
    const { kind } = reading;
    const summaries = anomaliesOf(reading, state.listings.get(kind));
    if (summaries === undefined) return;
    const before = state.anomalies.get(kind) ?? [];
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
    watch: (project, health = NEVER_POLLED) => {
      states.set(project, { health, listings: new Map(), anomalies: new Map() });
    },
    forget: (project) => {
      states.delete(project);
    },
    forgetListings: () => {
      for (const { listings } of states.values()) listings.clear();
    },
    health: (project) => states.get(project)?.health ?? NEVER_POLLED,
  };
}

function describe(error: ApiError): PollFailure {
  return { reason: error.reason, message: error.message, details: error.details };
}

function isWorthStoring(changes: Changes): boolean {
  return changes.baseline || changes.records.length > 0;
}

/** Undefined when there was no listing. */
function anomaliesOf(
  reading: Reading,
  memory: ListingMemory | undefined,
): readonly AnomalySummary[] | undefined {
  if ('answer' in reading) {
    return reading.answer.unchanged
      ? (memory?.anomalies ?? [])
      : summarize(reading.answer.listing.anomalies);
  }
  const { anomalies } = reading.error.details;
  return anomalies && summarize(anomalies);
}

import { KINDS, type Kind } from '../domain/status.ts';
import { ApiError } from './errors.ts';
import type { Observer } from './events.ts';
import { revalidationOf, type ListingMemory } from './listing-memory.ts';
import type { Clock } from './ports/clock.ts';
import type { EvaluationService, ListingAnswer } from './ports/service.ts';
import type { Shutdown } from './ports/shutdown.ts';

/** Settings of a project that a poll needs. */
export interface PolledProject {
  readonly id: string;
  readonly datasets: boolean;
}

/** One run of a project's schedule. */
export interface PollRun {
  /** When the run was due, epoch ms. */
  readonly dueAt: number;
  /** When the next run is due, epoch ms; undefined if there is none. */
  readonly nextAt: number | undefined;
}

/** One listing of a poll: the service's answer, or the error instead of it. */
export type Reading =
  | { readonly kind: Kind; readonly answer: ListingAnswer }
  | { readonly kind: Kind; readonly error: ApiError };

export interface ReadingOptions {
  readonly service: Pick<EvaluationService, 'list'>;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly shutdown: Shutdown;
}

/** State of a project that determines its requests. */
interface ReadingContext {
  readonly run: PollRun;
  readonly isFailing: boolean;
  /** Asked when the first request gets its turn, which can be long after the start of the poll. */
  readonly isWatched: () => boolean;
  readonly memory: ReadonlyMap<Kind, ListingMemory>;
}

export type ReadListings = (
  project: PolledProject,
  context: ReadingContext,
) => Promise<readonly Reading[] | undefined>;

/** The project was unwatched before a request of a listing went out. */
class UnwatchedError extends Error {}

/**
 * Creates a function that requests the listings of a project concurrently. The function resolves to undefined if a shutdown
 * aborted the requests, or if the project was unwatched before one went out.
 */
export function createReadListings(options: ReadingOptions): ReadListings {
  const { service, clock, emit, shutdown } = options;

  /** Started runs. A poll whose commit is refused is repeated, but its run starts only once. */
  const started = new WeakSet<PollRun>();

  function createLagEmitter(project: string, run: PollRun): () => void {
    const { dueAt } = run;
    return () => {
      if (started.has(run)) return;
      started.add(run);
      const lagMs = Math.max(0, clock.now() - dueAt);
      emit({ type: 'scheduler.started_poll', project, lagMs });
    };
  }

  return async (project, { run, isFailing, isWatched, memory }) => {
    const emitLag = createLagEmitter(project.id, run);
    const onRequest = () => {
      if (!isWatched()) throw new UnwatchedError();
      emitLag();
    };
    const read = async (kind: Kind): Promise<Reading> => {
      try {
        const answer = await service.list(project.id, kind, {
          ...revalidationOf(memory.get(kind), clock),
          isFailing,
          onRequest,
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
    const isExpected = (reason: unknown) =>
      shutdown.waits.aborted || reason instanceof UnwatchedError;
    const readings: Reading[] = [];
    for (const result of settled) {
      if (result.status === 'fulfilled') readings.push(result.value);
      else if (!isExpected(result.reason)) throw result.reason;
    }
    return readings.length < settled.length ? undefined : readings;
  };
}

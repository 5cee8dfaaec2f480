import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/app/clock.ts';
import type { Coordinator } from '../../src/coordination/ports.ts';
import type { KnownRecord } from '../../src/domain/record.ts';
import { StoreError } from '../../src/monitor/errors.ts';
import type { Clock } from '../../src/monitor/ports/clock.ts';
import type { CommittedTransition, PollHealth, Store } from '../../src/monitor/ports/store.ts';
import { openPostgres, type PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { eventLog, listingOf } from './monitor.ts';
import { detectChanges } from './at-once.ts';

const MAX_REPETITIONS = 10;
/** Ends of the messages about a connection that took too long. */
const LATE =
  /\((?:timeout exceeded when trying to connect|Connection terminated due to connection timeout)\)$/;

/** Opens the store and coordinator of a worker, with shortcuts for coordination and poller. */
export async function startWorker(
  url: string,
  {
    id = randomUUID(),
    leaseMs = 600_000,
    clock = systemClock,
  }: { readonly id?: string; readonly leaseMs?: number; readonly clock?: Clock } = {},
) {
  const log = eventLog();
  const gaveUp = new AbortController();
  const { store, coordinator } = await connectPatiently(() =>
    openPostgres({
      url,
      worker: id,
      leaseMs,
      clock,
      emit: log.emit,
      signal: gaveUp.signal,
    }),
  );
  const identity = { id, version: '1.0.0', configDigest: 'same' };
  await connectPatiently(() => coordinator.join(identity));
  return {
    id,
    identity,
    store,
    coordinator,
    log,
    /** Returns the ids of the projects that it got. */
    claim: (projects: readonly string[], most = projects.length) =>
      claim(store, coordinator, id, projects, most),
    /** Commits a poll of a project with these statuses by id. */
    see: (project: string, statuses: Readonly<Record<string, string>>, at = 1000) =>
      see(store, project, statuses, at),
    giveUp: () => gaveUp.abort(),
    [Symbol.asyncDispose]: async () => {
      gaveUp.abort();
      await store.close();
    },
  };
}

/**
 * Calls `connect` again if a connection to the database took too long, as a supervisor would start a daemon again. evalwatch
 * gives a connection 3 s, and a busy machine can hold up this process for longer.
 */
export async function connectPatiently<Result>(connect: () => Promise<Result>): Promise<Result> {
  for (let left = MAX_REPETITIONS; ; left -= 1) {
    try {
      return await connect();
    } catch (error) {
      if (left === 0 || !(error instanceof StoreError) || !LATE.test(error.message)) throw error;
      console.warn(`connecting once more: ${error.message}`);
    }
  }
}

async function claim(
  store: PostgresStore,
  coordinator: Coordinator,
  worker: string,
  projects: readonly string[],
  most: number,
): Promise<readonly string[]> {
  const claimed = await coordinator.claim(worker, projects, most);
  for (const { project, epoch } of claimed) store.own(project, epoch);
  return claimed.map(({ project }) => project).toSorted();
}

async function see(
  store: Store,
  project: string,
  statuses: Readonly<Record<string, string>>,
  at: number,
): Promise<readonly CommittedTransition[] | undefined> {
  const { version, token, listings } = await store.loadKnown(project, ['prompt']);
  const known = listings.get('prompt') ?? {
    baselined: false,
    records: new Map<string, KnownRecord>(),
  };
  const changes = detectChanges(known, listingOf(statuses), { at, missingAfter: 2 });
  return await store.commitPoll({
    project,
    at,
    health: healthAt(at),
    version,
    token,
    listings: new Map([['prompt', changes]]),
  });
}

export function healthAt(at: number): PollHealth {
  const times = { lastPollAt: at, lastSuccessAt: at, steadySince: at };
  return { up: true, consecutiveFailures: 0, reason: undefined, ...times };
}

import { randomUUID } from 'node:crypto';
import { afterAll } from 'vitest';
import { systemClock } from '../../src/app/clock.ts';
import type { Observer } from '../../src/monitor/events.ts';
import type { Store, StoreReader } from '../../src/monitor/ports/store.ts';
import { openPostgres, type PostgresOptions } from '../../src/store/postgres/postgres-store.ts';
import { connectPatiently } from '../support/postgres-store.ts';
import { describeStore } from './store-suite.ts';

export interface EmptyDatabase extends Pick<PostgresOptions, 'url' | 'open'> {
  readonly openReader: () => Promise<StoreReader>;
  /** Deletes every row, so that the next test can use the database. Without it each test gets a new one. */
  readonly clear?: () => Promise<void>;
}

type Worker = Awaited<ReturnType<typeof openWorker>>;

/** Tests the adapter of PostgreSQL with a worker that owns every project. */
export function describePostgres(name: string, create: () => Promise<EmptyDatabase>): void {
  /** Emptied database and worker of the previous test. */
  let kept: { readonly database: EmptyDatabase; readonly worker: Worker } | undefined;
  afterAll(() => kept?.worker.store.close());

  describeStore(name, async (emit) => {
    const database = kept?.database ?? (await create());
    let worker = kept?.worker ?? (await openWorker(database));
    kept = undefined;
    await worker.join(emit);
    return {
      store: worker.store,
      reopen: async () => {
        await worker.leave();
        await worker.store.close();
        worker = await openWorker(database);
        await worker.join(emit);
        await worker.store.configureProjects(await configured(worker.store), 0);
        return worker.store;
      },
      openReader: database.openReader,
      [Symbol.asyncDispose]: async () => {
        if (database.clear === undefined) {
          await worker.store.close();
          return;
        }
        worker.disownAll();
        await database.clear();
        if (!worker.isFit()) {
          await worker.store.close();
          worker = await openWorker(database);
        }
        kept = { database, worker };
      },
    };
  });
}

/** Opens a worker that owns configured projects at once, as the coordination would arrange soon. */
async function openWorker(database: EmptyDatabase) {
  let observe: Observer = () => {};
  const id = randomUUID();
  const { store, coordinator } = await connectPatiently(() =>
    openPostgres({
      ...database,
      worker: id,
      leaseMs: 600_000,
      clock: systemClock,
      emit: (event) => observe(event),
      signal: new AbortController().signal,
    }),
  );
  const owned = new Set<string>();
  let isFit = true;
  const owning: Store = {
    ...store,
    configureProjects: async (ids, at) => {
      await store.configureProjects(ids, at);
      for (const { project, epoch } of await coordinator.claim(id, ids, ids.length)) {
        store.own(project, epoch);
        owned.add(project);
      }
    },
    events: async (...asked) => {
      // The store keeps the highest number, but `clear` restarts the numbers.
      isFit = false;
      return await store.events(...asked);
    },
    close: async () => {
      isFit = false;
      await store.close();
    },
  };
  return {
    store: owning,
    /** Whether the next test can use it. */
    isFit: () => isFit,
    /** Joins, and emits its events to this observer. */
    join: async (emit: Observer) => {
      observe = emit;
      const identity = { id, version: '1.0.0', configDigest: '' };
      await connectPatiently(() => coordinator.join(identity));
    },
    leave: () => coordinator.leave(id).catch(() => undefined),
    disownAll: () => {
      for (const project of owned) store.disown(project);
      owned.clear();
    },
  };
}

async function configured(store: Store): Promise<readonly string[]> {
  return (await store.snapshot()).projects.map(({ project }) => project);
}

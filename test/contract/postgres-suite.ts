import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/app/clock.ts';
import type { Coordinator } from '../../src/coordination/ports.ts';
import type { Store, StoreReader } from '../../src/monitor/ports/store.ts';
import {
  openPostgres,
  type PostgresOptions,
  type PostgresStore,
} from '../../src/store/postgres/postgres-store.ts';
import { describeStore } from './store-suite.ts';

/** A new and empty database. */
export interface EmptyDatabase extends Pick<PostgresOptions, 'url' | 'open'> {
  readonly openReader: () => Promise<StoreReader>;
}

/** Tests the adapter of PostgreSQL with a worker that owns every project. */
export function describePostgres(name: string, create: () => Promise<EmptyDatabase>): void {
  describeStore(name, async (emit) => {
    const { openReader, ...database } = await create();
    const signal = new AbortController().signal;
    const open = async () => {
      const worker = randomUUID();
      const lease = { worker, leaseMs: 600_000, clock: systemClock };
      const { store, coordinator } = await openPostgres({ ...database, ...lease, emit, signal });
      await coordinator.join({ id: worker, version: '1.0.0', configDigest: '' });
      return {
        opened: store,
        store: owningAll(store, coordinator, worker),
        leave: () => coordinator.leave(worker).catch(() => undefined),
      };
    };
    let { opened, store, leave } = await open();
    return {
      store,
      reopen: async () => {
        await leave();
        await opened.close();
        ({ opened, store, leave } = await open());
        await store.configureProjects(await configured(opened), 0);
        return store;
      },
      openReader,
      [Symbol.asyncDispose]: () => opened.close(),
    };
  });
}

/** A store whose only worker owns what is configured at once: as the coordination would have it, soon. */
function owningAll(store: PostgresStore, coordinator: Coordinator, worker: string): Store {
  return {
    ...store,
    configureProjects: async (ids, at) => {
      await store.configureProjects(ids, at);
      for (const { project, epoch } of await coordinator.claim(worker, ids, ids.length)) {
        store.own(project, epoch);
      }
    },
  };
}

async function configured(store: Store): Promise<readonly string[]> {
  return (await store.snapshot()).projects.map(({ project }) => project);
}

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { systemClock } from '../../src/app/clock.ts';
import type { Coordinator } from '../../src/coordination/ports.ts';
import type { Store } from '../../src/monitor/ports/store.ts';
import { openPostgresReader } from '../../src/store/postgres/postgres-reader.ts';
import { openPostgres, type PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { startPostgres } from '../support/postgres.ts';
import { postgresPrograms, type PostgresServer } from '../support/postgres-server.ts';
import { describeStore } from './store-suite.ts';

describe.skipIf(postgresPrograms === undefined)('with PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  describeStore('the PostgreSQL', async (emit) => {
    const { url } = await server.createDatabase();
    const signal = new AbortController().signal;
    const open = async () => {
      const worker = randomUUID();
      const options = { url, worker, leaseMs: 600_000, clock: systemClock, emit, signal };
      const { store, coordinator } = await openPostgres(options);
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
      openReader: () => openPostgresReader({ clock: systemClock, url }),
      [Symbol.asyncDispose]: () => opened.close(),
    };
  });
});

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

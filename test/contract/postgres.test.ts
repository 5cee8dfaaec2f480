import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../src/app/clock.ts';
import type { Observer } from '../../src/monitor/events.ts';
import { openPostgresReader } from '../../src/store/postgres/postgres-reader.ts';
import { openPostgres } from '../../src/store/postgres/postgres-store.ts';
import {
  adopt,
  connectPatiently,
  describePostgres,
  type TestDatabase,
} from '../support/postgres-store.ts';
import { storeWith } from '../support/store-with.ts';
import { describeStore } from './store-suite.ts';

/** Resets a store to its state after creation. */
const CLEAR = `DO $$ BEGIN
  EXECUTE (
    SELECT 'TRUNCATE ' || string_agg(format('evalwatch.%I', tablename), ', ') || ' RESTART IDENTITY'
    FROM pg_tables WHERE schemaname = 'evalwatch' AND tablename NOT IN ('schema_version', 'rate'));
END $$`;

// A worker that owns every project. The tests share a database, and a worker while it is fit.
describePostgres('with PostgreSQL', (open) => {
  let db: TestDatabase;
  let client: Client;
  let worker: Awaited<ReturnType<typeof openWorker>> | undefined;
  beforeAll(async () => {
    db = await open();
    client = await db.connect();
  });
  afterAll(async () => {
    await worker?.store.close();
    await db[Symbol.asyncDispose]();
  });

  describeStore('the PostgreSQL', async (emit) => {
    let own = (worker ??= await openWorker(db.url));
    await own.join(emit);
    return {
      store: own.store,
      reopen: async () => {
        await own.leave();
        await own.store.close();
        own = worker = await openWorker(db.url);
        await own.join(emit);
        const { projects } = await own.store.snapshot();
        await own.store.configureProjects(
          projects.map(({ project }) => project),
          0,
        );
        return own.store;
      },
      openReader: () => openPostgresReader({ clock: systemClock, url: db.url }),
      [Symbol.asyncDispose]: async () => {
        own.disownAll();
        await client.query(CLEAR);
        if (own.isFit()) return;
        worker = undefined;
        await own.store.close();
      },
    };
  });
});

/** Opens a worker that owns configured projects at once, as the coordination would arrange soon. */
async function openWorker(url: string) {
  let observe: Observer = () => {};
  const id = randomUUID();
  const { store, coordinator } = await connectPatiently(() =>
    openPostgres({
      url,
      worker: id,
      leaseMs: 600_000,
      clock: systemClock,
      emit: (event) => observe(event),
      signal: new AbortController().signal,
    }),
  );
  const identity = { id, version: '1.0.0', configDigest: '' };
  let isFit = true;
  const owning = storeWith(store, {
    configureProjects: async (ids, at) => {
      await store.configureProjects(ids, at);
      await coordinator.claim(identity, ids);
      await adopt(store, coordinator, id);
    },
    events: async (...asked) => {
      // The store keeps the highest number, but a cleared database restarts the numbers.
      isFit = false;
      return await store.events(...asked);
    },
    close: async () => {
      isFit = false;
      await store.close();
    },
  });
  return {
    store: owning,
    /** Whether the next test can use it. */
    isFit: () => isFit,
    /** Joins, and emits its events to this observer. */
    join: async (emit: Observer) => {
      observe = emit;
      await connectPatiently(() => coordinator.renew(identity));
    },
    leave: () => coordinator.leave(id).catch(() => undefined),
    disownAll: () => {
      for (const project of store.ownership.tokens.keys()) store.ownership.disown(project);
    },
  };
}

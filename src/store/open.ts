import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import { trackWork } from '../files/thread-work.ts';
import type { Logger } from '../log/logger.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Store } from '../monitor/ports/store.ts';
import type { Postgres } from './postgres/postgres-store.ts';
import { openStore as openSqlite } from './sqlite/sqlite-store.ts';

/** The store of a configuration. */
export interface OpenStore {
  readonly store: Store;
  readonly info: { readonly engine: 'sqlite' | 'postgresql'; readonly version: string };
  /** Whether what is stored is where the configuration says. */
  readonly isInPlace: () => boolean;
  /** What several processes share; absent where there can be but one. */
  readonly shared: Shared | undefined;
}

export interface Shared extends Postgres {
  /** Of this process among all that ever were. */
  readonly name: string;
  readonly leaseMs: number;
}

export interface OpenStoreOptions {
  readonly store: Config['store'];
  readonly clock: Clock;
  readonly emit: Observer;
  readonly logger: Logger;
  /** Aborted when a shutdown has waited long enough for the store. */
  readonly signal: AbortSignal;
}

/**
 * Opens the store for polling. A SQLite file is held against others; PostgreSQL's driver is loaded only for PostgreSQL.
 * @throws {StoreError} when it cannot be opened or another process holds it
 * @throws {ConfigError} when the address of the database cannot be read
 */
export async function openStore(options: OpenStoreOptions): Promise<OpenStore> {
  // A file system, a name server or a large file may take long, and a signal ends the process meanwhile.
  return await trackWork(open(options));
}

async function open(options: OpenStoreOptions): Promise<OpenStore> {
  const { store: settings, clock, emit, logger, signal } = options;
  if ('path' in settings) {
    const store = await openSqlite({
      path: settings.path,
      clock,
      emit,
      onCreated: (path) => logger.warn({ event: 'store.created', path }, 'New store created'),
    });
    const info = { engine: 'sqlite', version: store.sqliteVersion } as const;
    return { store, info, isInPlace: () => store.isInPlace(), shared: undefined };
  }
  const [{ openPostgres }, { readPostgresUrl }] = await Promise.all([
    import('./postgres/postgres-store.ts'),
    import('../config/postgres-url.ts'),
  ]);
  const { leaseMs } = settings;
  const url = await readPostgresUrl(settings.postgresUrl);
  const name = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
  const postgres = await openPostgres({ url, worker: name, leaseMs, clock, emit, signal });
  return {
    store: postgres.store,
    info: { engine: 'postgresql', version: postgres.store.serverVersion },
    isInPlace: () => true,
    shared: { ...postgres, name, leaseMs },
  };
}

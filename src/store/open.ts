import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import type { Observer } from '../monitor/events.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { Store, StoreReader } from '../monitor/ports/store.ts';
import type { NotifyStore } from '../notify/ports.ts';
import type { Postgres } from './postgres/postgres-store.ts';

// Chooses the engine of a configuration. Each engine is imported when it is needed.

type StoreConfig = Config['store'];
/** What is needed to read a store. */
export type StoreLocation = Pick<SqliteConfig, 'path'> | PostgresConfig;

type SqliteConfig = Extract<StoreConfig, { readonly path: string }>;
type PostgresConfig = Exclude<StoreConfig, SqliteConfig>;

export interface OpenStore {
  readonly store: Store;
  readonly notifications: NotifyStore;
  readonly info: { readonly engine: 'sqlite' | 'postgresql'; readonly version: string };
  /** Whether the store is still the one that the configuration names. */
  readonly isInPlace: () => boolean;
  /** Coordination of several workers; undefined for SQLite, which serves one process. */
  readonly shared: SharedStore | undefined;
}

interface SharedStore extends Postgres {
  /** Name of this worker, unique across restarts. */
  readonly name: string;
  readonly leaseMs: number;
}

export interface OpenStoreOptions {
  readonly store: StoreConfig;
  readonly clock: Clock;
  readonly emit: Observer;
  readonly logger: Logger;
  /** Aborts when a shutdown has waited long enough for the store. */
  readonly signal: AbortSignal;
}

export function isSqlite<Location extends StoreLocation>(
  store: Location,
): store is Exclude<Location, PostgresConfig> {
  return 'path' in store;
}

/**
 * Opens the store for polling. A SQLite file is locked against other daemons.
 * @throws {StoreError} when it cannot be opened or another process holds it
 * @throws {ConfigError} when the address of the database cannot be read
 */
export async function openStore(options: OpenStoreOptions): Promise<OpenStore> {
  const { store } = options;
  return await (isSqlite(store) ? openFile(store, options) : openDatabase(store, options));
}

/**
 * Opens the store for reading, beside a daemon or without one.
 * @throws {StoreError} also if there is no store yet, or its schema version is another
 * @throws {ConfigError} when the address of the database cannot be read
 */
export async function openStoreReader(store: StoreLocation, clock: Clock): Promise<StoreReader> {
  if (isSqlite(store)) {
    const { openReader } = await import('./sqlite/sqlite-reader.ts');
    return await openReader({ path: store.path });
  }
  const [{ openPostgresReader }, url] = await Promise.all([
    import('./postgres/postgres-reader.ts'),
    readUrl(store),
  ]);
  return await openPostgresReader({ url, clock });
}

async function openFile(
  { path }: SqliteConfig,
  { clock, emit, logger }: OpenStoreOptions,
): Promise<OpenStore> {
  const sqlite = await import('./sqlite/sqlite-store.ts');
  const store = await sqlite.openStore({
    path,
    clock,
    emit,
    onCreated: (created) =>
      logger.warn({ event: 'store.created', path: created }, 'New store created'),
    onUpgrade: ({ from, to, bytes }) =>
      logger.info(
        { event: 'store.upgrading', path, from, to, size_bytes: bytes },
        'Upgrading the store',
      ),
  });
  return {
    store,
    notifications: store.notifications,
    info: { engine: 'sqlite', version: store.sqliteVersion },
    isInPlace: () => store.isInPlace(),
    shared: undefined,
  };
}

async function openDatabase(
  config: PostgresConfig,
  { clock, emit, signal }: OpenStoreOptions,
): Promise<OpenStore> {
  const { openPostgres } = await import('./postgres/postgres-store.ts');
  const { leaseMs } = config;
  const url = await readUrl(config);
  const name = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
  const postgres = await openPostgres({ url, worker: name, leaseMs, clock, emit, signal });
  return {
    store: postgres.store,
    notifications: postgres.store.notifications,
    info: { engine: 'postgresql', version: postgres.store.serverVersion },
    isInPlace: () => true,
    shared: { ...postgres, name, leaseMs },
  };
}

async function readUrl({ postgresUrl }: PostgresConfig): Promise<string> {
  const { readPostgresUrl } = await import('../config/secrets.ts');
  return await readPostgresUrl(postgresUrl);
}

import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { StoreError } from '../monitor/errors.ts';
import { isSqlite } from '../store/open.ts';
import { UsageError } from './outcome.ts';

/**
 * The path of the SQLite store, for a command that has nothing to do with another one.
 * @throws {UsageError} with `instead`, what to do with PostgreSQL
 */
export function storeFile(store: Config['store'], instead: string): string {
  if (isSqlite(store)) return store.path;
  throw new UsageError(
    `this command needs a SQLite store, but the configuration names PostgreSQL: ${instead}`,
  );
}

/** Tells that the address of the database is not there yet, or none. Never shows any part of it. */
export async function storeWarnings(store: Config['store']): Promise<readonly string[]> {
  if (isSqlite(store)) return [];
  const [{ readPostgresUrl }, { readUrl }] = await Promise.all([
    import('../config/postgres-url.ts'),
    import('../store/postgres/url.ts'),
  ]);
  try {
    await readUrl(await readPostgresUrl(store.postgresUrl));
    return [];
  } catch (error) {
    if (error instanceof ConfigError || error instanceof StoreError) return [error.message];
    throw error;
  }
}

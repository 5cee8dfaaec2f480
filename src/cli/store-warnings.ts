import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { StoreError } from '../monitor/errors.ts';
import { isSqlite } from '../store/open.ts';

/** Returns a warning if the address of the database is missing or invalid. Never contains any part of the address. */
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

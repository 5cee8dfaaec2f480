import type { Config } from '../config/config.ts';
import type { StoreReader } from '../monitor/ports/store.ts';

/**
 * Opens the store of a configuration for reading; what reads it is imported here.
 * @throws {StoreError}
 * @throws {ConfigError} when the address of the database cannot be read
 */
export async function openStoreReader(store: Config['store']): Promise<StoreReader> {
  if ('path' in store) {
    const { openReader } = await import('../store/sqlite/sqlite-reader.ts');
    return await openReader({ path: store.path });
  }
  const [{ openPostgresReader }, { readPostgresUrl }] = await Promise.all([
    import('../store/postgres/postgres-reader.ts'),
    import('../config/postgres-url.ts'),
  ]);
  return await openPostgresReader({ url: await readPostgresUrl(store.postgresUrl) });
}

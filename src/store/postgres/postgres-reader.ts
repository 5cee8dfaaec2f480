import type { StoreReader } from '../../monitor/ports/store.ts';
import { openDatabase } from './database.ts';
import { assertReadable } from './sql/migrate.ts';
import { createReads } from './reads.ts';
import { readUrl } from './url.ts';

/** An export of everything takes its time. */
const TIMEOUT_MS = 60_000;

/**
 * Opens the store for reading, from anywhere, beside workers or without any.
 * @throws {StoreError} also if there is none yet, or one of another schema version
 */
export async function openPostgresReader(options: { readonly url: string }): Promise<StoreReader> {
  const settings = await readUrl(options.url);
  const database = openDatabase({ settings, connections: 2, timeoutMs: TIMEOUT_MS });
  try {
    await assertReadable(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { ...createReads(database), close: () => database.close() };
}

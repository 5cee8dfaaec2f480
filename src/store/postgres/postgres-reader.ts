import type { Clock } from '../../monitor/ports/clock.ts';
import type { StoreReader } from '../../monitor/ports/store.ts';
import { openDatabase } from './database.ts';
import { assertReadable } from './sql/migrate.ts';
import { createReads } from './reads.ts';
import { readUrl } from './url.ts';

/** Time limit of a statement, ms: an export reads every row. */
const TIMEOUT_MS = 60_000;

/**
 * Opens the store for reading, beside workers or without any.
 * @throws {StoreError} also if there is no store yet, or its schema version is another
 */
export async function openPostgresReader(options: {
  readonly url: string;
  readonly clock: Clock;
}): Promise<StoreReader> {
  const { url, clock } = options;
  const settings = await readUrl(url);
  const database = openDatabase({ settings, connections: 2, timeoutMs: TIMEOUT_MS, clock });
  try {
    await assertReadable(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { ...createReads(database, clock), close: () => database.close() };
}

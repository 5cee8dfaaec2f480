import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { CONFIGURE } from '../projects.ts';
import type { Database } from './database.ts';
import { toStatement } from './sql/texts.ts';

/**
 * Configures these projects (`Store.configureProjects`). It is made at most once, or not at all: if its answer is lost, the
 * error says that it may have been made. Workers whose configuration the database then contradicts repair that
 * (docs/specification.md#lost-configurations).
 */
export async function configure(
  database: Pick<Database, 'attempt'>,
  clock: Pick<Clock, 'monotonic'>,
  emit: Observer,
  ids: readonly string[],
  at: number,
): Promise<void> {
  const started = clock.monotonic();
  const { statement, values } = toStatement(CONFIGURE, { ids: JSON.stringify(ids), at });
  const { error, unknown } = await database.attempt(statement, values);
  if (error === undefined) {
    return emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
  }
  emit({ type: 'store.commit_failed', reason: error.reason, error });
  if (!unknown) throw error;
  throw new StoreError(
    error.reason,
    `${error.message}; the watched projects may have changed already: repeat this once the database accepts it`,
  );
}

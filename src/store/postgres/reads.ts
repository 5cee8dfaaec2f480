import type { Clock } from '../../monitor/ports/clock.ts';
import type { StoreReader } from '../../monitor/ports/store.ts';
import type { Database } from './database.ts';
import { createCauseQuery } from './sql/cause-query.ts';
import { createDurationQuery } from './sql/duration-query.ts';
import { createEventQuery } from './sql/event-query.ts';
import { createFailureCounts } from './sql/failure-counts.ts';
import { createMoveQuery } from './sql/move-query.ts';
import { createRowQueries } from './sql/row-queries.ts';
import { PROJECT_SNAPSHOT, SNAPSHOT, type SnapshotRow, toSnapshot } from './sql/snapshot.ts';

/** Creates the methods of `StoreReader`, which need no ownership. */
export function createReads(
  database: Pick<Database, 'query'>,
  clock: Pick<Clock, 'sleep'>,
): Omit<StoreReader, 'close'> {
  return {
    ...createRowQueries(database),
    snapshot: async (project) => {
      const [row] =
        project === undefined
          ? await database.query<SnapshotRow>(SNAPSHOT)
          : await database.query<SnapshotRow>(PROJECT_SNAPSHOT, [project]);
      return toSnapshot(row ?? { projects: null, count: 0, oldest_at: null });
    },
    events: createEventQuery(database, clock),
    moves: createMoveQuery(database),
    failureCounts: createFailureCounts(database),
    durations: createDurationQuery(database),
    causes: createCauseQuery(database),
  };
}

import type { DurationCount } from '../../../domain/limits.ts';
import type { StoreReader } from '../../../monitor/ports/store.ts';
import type { Database } from '../database.ts';

const SELECT = {
  name: 'durations',
  text: `SELECT state.position, d.day, d.bucket, d.count
    FROM json_to_recordset($1) AS state(position integer, project text, status text)
    JOIN evalwatch.project p ON p.id = state.project
    JOIN evalwatch.prompt_duration d
      ON d.project_key = p.project_key AND d.status = state.status AND d.day >= $2`,
};

interface DurationRow extends DurationCount {
  /** Index of the state. */
  readonly position: number;
}

/** Creates `StoreReader.durations`. */
export function createDurationQuery(database: Pick<Database, 'query'>): StoreReader['durations'] {
  return async (states, firstDay) => {
    const asked = states.map(({ project, status }, position) => {
      return { position, project, status };
    });
    const rows = await database.query<DurationRow>(SELECT, [JSON.stringify(asked), firstDay]);
    const counts = Map.groupBy(rows, ({ position }) => position);
    return states.map((state, position) => ({ ...state, counts: counts.get(position) ?? [] }));
  };
}

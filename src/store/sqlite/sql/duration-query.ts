import type { DurationCount } from '../../../domain/limits.ts';
import type { ProjectState, StateDurations } from '../../../monitor/ports/store.ts';
import type { Connection } from '../connection.ts';

/** Creates `StoreReader.durations`. */
export function createDurationQuery(
  db: Connection,
): (states: readonly ProjectState[], firstDay: number) => readonly StateDurations[] {
  const select = db.prepare<ProjectState & { readonly firstDay: number }, DurationCount>(
    `SELECT d.day, d.bucket, d.count
     FROM project p
     JOIN listing l ON l.project_key = p.project_key AND l.kind = 'prompt'
     JOIN prompt_duration d ON d.listing_key = l.listing_key
     WHERE p.id = :project AND d.status = :status AND d.day >= :firstDay`,
  );
  return (states, firstDay) =>
    states.map(({ project, status }) => {
      return { project, status, counts: select.all({ project, status, firstDay }) };
    });
}

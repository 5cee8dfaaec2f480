import { KINDS } from '../../../domain/status.ts';
import type { PollHealth, StoreSnapshot } from '../../../monitor/ports/store.ts';
import { type ErrorTotalColumns, toErrorTotals, toHealth } from '../../rows.ts';
import type { Statement } from '../database.ts';
import { toListingSnapshot, type Summary } from './summary.ts';

/** Selects every configured project at one moment, as one JSON value, which takes a tenth of the time of rows. */
export const SNAPSHOT: Statement = {
  name: 'snapshot',
  text: `
SELECT (SELECT json_agg(json_build_array(id, configured_at, up, consecutive_failures, reason,
      last_poll_at, last_success_at, steady_since, prompts, datasets,
      (SELECT json_agg(json_build_array(label, count, first_seen_at) ORDER BY label)
       FROM evalwatch.error_total e WHERE e.project_key = p.project_key)) ORDER BY id)
    FROM evalwatch.project p WHERE removed_at IS NULL) AS projects,
  pending.count, (SELECT at FROM evalwatch.transition WHERE transition_id = pending.oldest) AS oldest_at
FROM (SELECT count(*) AS count, min(transition_id) AS oldest
      FROM evalwatch.failure WHERE settled_at IS NULL) AS pending`,
};

export interface SnapshotRow {
  readonly projects: readonly ProjectRow[] | null;
  readonly count: number;
  readonly oldest_at: number | null;
}

type ProjectRow = readonly [
  id: string,
  configuredAt: number,
  up: boolean,
  consecutiveFailures: number,
  reason: PollHealth['reason'] | null,
  lastPollAt: number | null,
  lastSuccessAt: number | null,
  steadySince: number | null,
  prompts: Summary,
  datasets: Summary,
  errors: readonly ErrorTotalColumns[] | null,
];

export function toSnapshot({ projects, count, oldest_at }: SnapshotRow): StoreSnapshot {
  return {
    projects: (projects ?? []).map((row) => {
      const [project, configuredAt, up, consecutive_failures, reason] = row;
      const [, , , , , last_poll_at, last_success_at, steady_since, prompt, dataset, errors] = row;
      const times = { last_poll_at, last_success_at, steady_since };
      const health = { up, consecutive_failures, reason, ...times };
      const summaries = { prompt, dataset };
      return {
        project,
        configuredAt,
        health: toHealth(health),
        listings: new Map(
          KINDS.map((kind) => {
            const listing = toListingSnapshot(kind, summaries[kind]);
            return [
              kind,
              kind === 'prompt' && errors ? { ...listing, errors: toErrorTotals(errors) } : listing,
            ];
          }),
        ),
      };
    }),
    backlog: { count, oldestAt: oldest_at ?? undefined },
  };
}

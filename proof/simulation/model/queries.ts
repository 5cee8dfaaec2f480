import { failureColumns, findFailures, transitionColumns } from './built-queries.ts';
import type { Statements } from './statement.ts';
import {
  compareTexts,
  type ProjectRow,
  rowsOf,
  type Tables,
  type TransitionRow,
} from './tables.ts';

type Asked = string | null;

/** Models src/store/postgres/sql/*-query.ts and failure-counts.ts, and `projects` of row-queries.ts. */
export function queryStatements(tables: Tables): Statements {
  const { project, transition, last } = tables;

  /** Returns the requested project, or all configured ones if it is null. */
  function shown(asked: Asked): readonly ProjectRow[] {
    const rows = [...project.values()];
    return rows.filter(({ id, removed_at }) =>
      asked === null ? removed_at === null : id === asked,
    );
  }

  /** Returns the moves of prompts of these projects, by id. */
  function movesOf(projects: readonly ProjectRow[]): readonly TransitionRow[] {
    return projects
      .flatMap(({ project_key }) => [...rowsOf(tables, project_key).transitions.values()])
      .filter(({ kind }) => kind === 'prompt')
      .toSorted((one, other) => one.transition_id - other.transition_id);
  }

  return {
    projects: () => [...project.keys()].toSorted(compareTexts).map((id) => ({ id })),
    event_numbers: () => [{ transition: last.transition, settlement: last.settlement }],
    // Each statement ends before the next one begins.
    event_writers: () => [],
    event_transitions: ([after, limit, end]: [number, number, number]) => {
      const projects = tables.projectByKey;
      return transition
        .values()
        .filter((move) => move.transition_id > after && move.transition_id <= end)
        .flatMap((move) => {
          const row = projects.get(move.project_key);
          return row === undefined ? [] : [transitionColumns({ project: row, move })];
        })
        .take(limit)
        .toArray();
    },
    event_settlements: ([after, limit, end]: [number, number, number]) =>
      tables.settlement
        .entries()
        .filter(([, settlement_id]) => settlement_id > after && settlement_id <= end)
        .flatMap(([id, settlement_id]) =>
          findFailures(tables, [id]).map((found) => ({ settlement_id, ...failureColumns(found) })),
        )
        .take(limit)
        .toArray(),
    first_left_out: ([asked, since, limit]: [Asked, number, number]) =>
      movesOf(shown(asked))
        .filter(({ at }) => at >= since)
        .toSorted((one, other) => other.at - one.at)
        .slice(limit, limit + 1)
        .map(({ at }) => ({ at })),
    move_counts: ([asked, since, spanMs, after]: [Asked, number, number, number]) => {
      const counts = new Map<string, { count: number; listed: number }>();
      for (const { id, project_key } of shown(asked)) {
        const { records, transitions } = rowsOf(tables, project_key);
        for (const row of transitions.values()) {
          const record = records[row.kind].get(row.record_id);
          if (row.kind !== 'prompt' || row.at <= after || record === undefined) continue;
          const span = Math.trunc((row.at - since) / spanMs);
          const key = { project: id, span, from: row.from_status, to: row.to_status };
          const text = JSON.stringify(key);
          const counted = counts.get(text) ?? { ...key, count: 0, listed: 0 };
          counts.set(text, counted);
          counted.count += 1;
          if (!record.gone) counted.listed += 1;
        }
      }
      return [...counts.values()];
    },
    failure_counts: ([asked, since, limit]: [Asked, number, number]) =>
      shown(asked).flatMap((row) => {
        const failed = movesOf([row]).filter(({ to_status, at }) => {
          return to_status === 'FAILED' && at >= since;
        });
        const count = Math.min(failed.length, limit);
        return count === 0 ? [] : [{ project: row.id, count }];
      }),
    durations: ([states, firstDay]: [string, number]) => {
      const asked = JSON.parse(states) as { position: number; project: string; status: string }[];
      return asked.flatMap(({ position, project: id, status }) => {
        const found = project.get(id);
        if (found === undefined) return [];
        return [...rowsOf(tables, found.project_key).durations.values()]
          .filter((row) => row.status === status && row.day >= firstDay)
          .map(({ day, bucket, count }) => ({ position, day, bucket, count }));
      });
    },
    causes: ([asked, since, limit, maxFailures]: [Asked, number, number, number]) => {
      const projects = shown(asked);
      const moves = movesOf(projects);
      const newest = moves
        .filter(({ to_status, at }) => to_status === 'FAILED' && at >= since)
        .toSorted((one, other) => other.at - one.at)
        .slice(0, maxFailures);
      const causeOf = ({ transition_id }: TransitionRow) => {
        return tables.failure.get(transition_id)?.cause ?? null;
      };
      const ranked = [...Map.groupBy(newest, causeOf)]
        .flatMap(([cause, rows]) => (cause === null ? [] : [summary(cause, rows)]))
        .toSorted((one, other) => {
          const byCount = other.count - one.count || other.last_at - one.last_at;
          return byCount || compareTexts(one.cause, other.cause);
        });
      const total_count = ranked.reduce((sum, { count }) => sum + count, 0);
      return ranked.slice(0, limit).map((row) => {
        const first = tables.failure.get(row.transition_id);
        const { error_id = null, error_msg = null, reason = null } = first ?? {};
        // The first failure of each project that has this cause.
        const old = projects.flatMap(
          ({ project_key }) =>
            moves.find((move) => move.project_key === project_key && causeOf(move) === row.cause) ??
            [],
        );
        const is_new = !old.some(({ at }) => at < since);
        const totals = { total_causes: ranked.length, total_count };
        return { ...row, ...totals, error_id, error_msg, reason, is_new };
      });
    },
  };
}

function summary(cause: string, rows: readonly TransitionRow[]) {
  const times = rows.map(({ at }) => at);
  return {
    cause,
    count: rows.length,
    projects: new Set(rows.map(({ project_key }) => project_key)).size,
    first_at: Math.min(...times),
    last_at: Math.max(...times),
    transition_id: Math.max(...rows.map(({ transition_id }) => transition_id)),
  };
}

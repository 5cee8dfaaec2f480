import type { Statements } from './statement.ts';
import {
  isLive,
  type FailureRow,
  type ProjectRow,
  type RowsOfProject,
  rowsOf,
  type Tables,
} from './tables.ts';

const PLACES = 20;
const SPECIAL: ReadonlySet<string> = new Set(['none', 'other']);

/** Models src/store/postgres/sql/failures.ts and error-totals.ts. */
export function failureStatements(tables: Tables): Statements {
  const { failure, transition } = tables;

  /** Returns the projects with pending failures, in the order of their keys. */
  function waiting() {
    const found: { readonly project: ProjectRow; readonly pending: Map<number, FailureRow> }[] = [];
    for (const [key, { pending }] of tables.ofProject) {
      const project = pending.size === 0 ? undefined : tables.projectByKey.get(key);
      if (project !== undefined) found.push({ project, pending });
    }
    return found;
  }

  function pendingRow(id: number, foundAt: unknown, promptId: unknown): FailureRow | undefined {
    const row = failure.get(id);
    const { at, record_id } = transition.get(id) ?? {};
    const isSame = at === foundAt && record_id === promptId;
    return row?.settled_at === null && isSame ? row : undefined;
  }

  return {
    failing_projects: () =>
      waiting().map(({ project }) => ({
        project: project.id,
        removed: project.removed_at !== null,
      })),
    claim_failures: (
      [dueAt, ids, limit, worker]: [number | null, string[] | null, number, string],
      nowUs,
    ) => {
      if (!isLive(tables, worker, nowUs)) return [];
      const wanted = ids && new Set(ids);
      const due = waiting()
        .filter(({ project }) => wanted === null || wanted.has(project.id))
        .flatMap(({ project, pending }) =>
          [...pending.values()]
            .filter(({ next_try_at, last_try_at, claimed_by }) => {
              const isDue =
                dueAt === null || next_try_at <= dueAt || (last_try_at ?? -Infinity) > dueAt;
              const isFree =
                claimed_by === null || claimed_by === worker || !isLive(tables, claimed_by, nowUs);
              return isDue && isFree;
            })
            .slice(0, limit)
            .map((row) => ({ project, row })),
        )
        .toSorted((one, other) => one.row.transition_id - other.row.transition_id);
      return due.map(({ project, row }) => {
        row.claimed_by = worker;
        const { transition_id, tries, useless_tries, first_try_at, last_try_at, next_try_at } = row;
        const { at = 0, record_id = '', record_name = null } = transition.get(transition_id) ?? {};
        const { id, removed_at } = project;
        const record = {
          transition_id,
          found_at: at,
          project: id,
          removed_at,
          record_id,
          record_name,
        };
        return { ...record, tries, useless_tries, first_try_at, last_try_at, next_try_at };
      });
    },
    settle_failure: (values: unknown[]) => {
      const [id, at, error_id, error_msg, error_msg_truncated] = values as [
        ...[number, number, string | null, string | null, boolean],
      ];
      const [reason, cause, label, foundAt] = values.slice(5) as [
        ...[string | null, string | null, string, number],
      ];
      const row = pendingRow(id, foundAt, values[9]);
      if (row === undefined) return [];
      const settlement = { error_id, error_msg, error_msg_truncated, reason, cause };
      Object.assign(row, { settled_at: at, ...settlement });
      const rows = rowsOf(tables, row.project_key);
      rows.pending.delete(id);
      tables.settlement.set(id, (tables.last.settlement += 1));
      countError(rows, label, at);
      return [];
    },
    postpone_failure: (values: unknown[]) => {
      const [id, tries, useless_tries, first_try_at, last_try_at, next_try_at] = values as [
        ...[number, number, number, number | null, number | null, number],
      ];
      const row = pendingRow(id, values[7], values[8]);
      if (row === undefined) return [];
      if (row.claimed_by !== null && row.claimed_by !== values[6]) return [];
      const times = { first_try_at, last_try_at, next_try_at };
      Object.assign(row, { tries, useless_tries, ...times, claimed_by: null });
      return [];
    },
  };
}

function countError(rows: RowsOfProject, own: string, at: number): void {
  const { errorTotals } = rows;
  let label = own;
  let place: number | null = null;
  if (!SPECIAL.has(own)) {
    const taken = new Set(Array.from(errorTotals.values(), (row) => row.place));
    const free = Array.from({ length: PLACES }, (_, index) => index + 1);
    // The server takes any of the free places.
    place = errorTotals.get(own)?.place ?? free.find((one) => !taken.has(one)) ?? null;
    if (place === null) label = 'other';
  }
  const stored = errorTotals.get(label);
  if (stored === undefined) {
    errorTotals.set(label, { label, place, count: 1, first_seen_at: at, last_seen_at: at });
  } else {
    stored.count += 1;
    stored.last_seen_at = Math.max(stored.last_seen_at, at);
  }
  rows.errorTotalsChange += 1;
}

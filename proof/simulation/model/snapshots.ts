import type { Statements } from './statement.ts';
import { compareTexts, type ProjectRow, rowsOf, type Tables } from './tables.ts';

const PROJECTS_PER_VALUE = 250;
/** Size of a row, in bytes. */
const ROW_BYTES = 100;

/** Models src/store/postgres/sql/snapshot.ts, owned-snapshot.ts and size.ts, and the reads of migrate.ts. */
export function snapshotStatements(tables: Tables): Statements {
  const { project, transition } = tables;

  function projectRow(row: ProjectRow): readonly unknown[] {
    const errors = [...rowsOf(tables, row.project_key).errorTotals.values()]
      .toSorted((one, other) => compareTexts(one.label, other.label))
      .map(({ label, count, first_seen_at }) => [label, count, first_seen_at]);
    const { id, configured_at, up, consecutive_failures, reason, last_poll_at } = row;
    const { last_success_at, steady_since, prompts, datasets } = row;
    const health = [up, consecutive_failures, reason, last_poll_at, last_success_at, steady_since];
    return [id, configured_at, ...health, prompts, datasets, errors.length === 0 ? null : errors];
  }

  function backlog() {
    let count = 0;
    let oldest = Infinity;
    for (const { pending } of tables.ofProject.values()) {
      count += pending.size;
      const [first = Infinity] = pending.keys();
      oldest = Math.min(oldest, first);
    }
    return { count, oldest_at: transition.get(oldest)?.at ?? null };
  }

  function stamp({ project_key, version }: ProjectRow): string {
    return `${project_key}.${version}.${rowsOf(tables, project_key).errorTotalsChange}`;
  }

  return {
    snapshot: () => {
      const rows = [...project.values()]
        .filter((row) => row.removed_at === null)
        .toSorted((one, other) => compareTexts(one.id, other.id));
      return [{ projects: rows.length === 0 ? null : rows.map(projectRow), ...backlog() }];
    },
    owned_stamps: ([worker]: [string]) => {
      const owned = [...project.values()]
        .filter((row) => row.owner === worker)
        .map((row) => {
          const { id, up, consecutive_failures, reason, last_poll_at, last_success_at } = row;
          const health = [up, consecutive_failures, reason, last_poll_at, last_success_at];
          return [id, stamp(row), ...health, row.steady_since];
        });
      const common = {
        server_started_at: 'once',
        configured: [...project.values()].filter((row) => row.removed_at === null).length,
        ...backlog(),
      };
      const parts: object[] = [];
      for (let start = 0; start === 0 || start < owned.length; start += PROJECTS_PER_VALUE) {
        const part = owned.slice(start, start + PROJECTS_PER_VALUE);
        parts.push({ ...common, projects: part.length === 0 ? null : part });
      }
      return parts;
    },
    owned_projects: ([worker, ids]: [string, string[]]) => {
      const found = ids.flatMap((id) => {
        const row = project.get(id);
        return row?.owner === worker ? [[stamp(row), projectRow(row)]] : [];
      });
      return [{ projects: found.length === 0 ? null : found }];
    },
    size: () => {
      const rows = project.size + transition.size + tables.failure.size + 1;
      return [{ bytes: rows * ROW_BYTES, is_counted: true, server_version: 'model' }];
    },
    find_schema: () => [{ ours: true, taken: true }],
    read_schema: () => [{ version: 5, compatible_from: 1 }],
  };
}

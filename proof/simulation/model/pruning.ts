import type { Statements } from './statement.ts';
import { type RowsOfProject, rowsOf, type Tables, type TransitionRow } from './tables.ts';

const MAX_ROWS = 250;

/** Models src/store/postgres/sql/pruning.ts. The server takes any rows, the model the first. */
export function pruningStatements(tables: Tables): Statements {
  const { project, waste, ofProject } = tables;

  /** Deletes the first rows of these maps for which the condition holds. */
  function deleteRows<Row>(
    maps: Iterable<Map<unknown, Row>>,
    condition: (row: Row) => boolean = () => true,
  ): readonly object[] {
    const deleted: object[] = [];
    for (const map of maps) {
      for (const [key, row] of map) {
        if (deleted.length === MAX_ROWS) return deleted;
        if (condition(row) && map.delete(key)) deleted.push({});
      }
    }
    return deleted;
  }

  function deleteTransitions(
    found: Iterable<TransitionRow>,
    condition: (row: TransitionRow) => boolean = () => true,
  ): readonly object[] {
    const old: TransitionRow[] = [];
    for (const row of found) {
      if (condition(row)) old.push(row);
      if (old.length === MAX_ROWS) break;
    }
    return old.map(({ transition_id, project_key }) => {
      tables.transition.delete(transition_id);
      tables.failure.delete(transition_id);
      tables.settlement.delete(transition_id);
      const { transitions, pending } = rowsOf(tables, project_key);
      transitions.delete(transition_id);
      pending.delete(transition_id);
      return { transition_id };
    });
  }

  function wasteOf<Part>(part: (rows: RowsOfProject) => Part): readonly Part[] {
    return Array.from(waste, (key) => part(rowsOf(tables, key)));
  }

  return {
    prune_projects: ([before]: [number]) => {
      for (const { id, project_key, removed_at } of project.values()) {
        if (removed_at === null || removed_at >= before) continue;
        if (rowsOf(tables, project_key).pending.size > 0) continue;
        project.delete(id);
        tables.projectByKey.delete(project_key);
        waste.add(project_key);
      }
      return [];
    },
    prune_transitions: ([before]: [number]) => {
      if (before <= tables.oldestMoveAt) return [];
      return deleteTransitions(tables.transition.values(), ({ at, transition_id, project_key }) => {
        return at < before && !rowsOf(tables, project_key).pending.has(transition_id);
      });
    },
    prune_waste: () =>
      deleteTransitions(wasteOf(({ transitions }) => [...transitions.values()]).flat()),
    prune_records: () =>
      deleteRows(wasteOf(({ records }) => [records.prompt, records.dataset]).flat()),
    prune_durations: ([firstDay]: [number]) =>
      deleteRows(
        Array.from(ofProject.values(), (rows) => rows.durations),
        ({ day }) => day < firstDay,
      ),
    prune_waste_durations: () => deleteRows(wasteOf(({ durations }) => durations)),
    prune_error_totals: ([before]: [number]) =>
      [...ofProject.values()].flatMap((rows) => {
        const deleted = deleteRows([rows.errorTotals], ({ last_seen_at, place }) => {
          return last_seen_at < before && place !== null;
        });
        if (deleted.length > 0) rows.errorTotalsChange += 1;
        return deleted;
      }),
    prune_waste_error_totals: () => deleteRows(wasteOf(({ errorTotals }) => errorTotals)),
    prune_keys: () => {
      for (const key of waste) {
        const { records, transitions, durations, errorTotals } = rowsOf(tables, key);
        const parts = [records.prompt, records.dataset, transitions, durations, errorTotals];
        if (parts.some((part) => part.size > 0)) continue;
        waste.delete(key);
        ofProject.delete(key);
      }
      return [];
    },
  };
}

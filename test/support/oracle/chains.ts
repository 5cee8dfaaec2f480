import type { Observation, TransitionRow } from './observation.ts';

/**
 * Checks rules that hold whatever was served: transition numbers are unique, and the transitions of a record form a chain
 * that ends at the status and time shown.
 */
export function checkChains({ transitions, statuses }: Observation): readonly string[] {
  const differences: string[] = [];
  const ordered = transitions.toSorted((one, other) => one.transition_id - other.transition_id);
  const seen = new Set<number>();
  const last = new Map<string, TransitionRow>();
  for (const row of ordered) {
    const record = recordOf(row);
    const before = last.get(record);
    last.set(record, row);
    if (seen.has(row.transition_id)) differences.push(`twice: ${JSON.stringify(row)}`);
    seen.add(row.transition_id);
    if (before !== undefined && before.to !== row.from) {
      differences.push(`no chain: ${JSON.stringify(row)} after ${JSON.stringify(before)}`);
    }
    if (before !== undefined && before.time > row.time) {
      differences.push(`out of order: ${JSON.stringify(row)} after ${JSON.stringify(before)}`);
    }
  }
  for (const row of statuses) {
    const move = last.get(recordOf(row));
    if (move !== undefined && (move.to !== row.status || move.time !== row.since)) {
      differences.push(`${JSON.stringify(row)} does not follow from ${JSON.stringify(move)}`);
    }
  }
  return differences;
}

function recordOf(row: { project: string; prompt_id?: string; dataset_id?: string }): string {
  return JSON.stringify([row.project, row.prompt_id, row.dataset_id]);
}

import type { StoreSnapshot } from '../../../src/monitor/ports/store.ts';
import type { ErrorTotals, FailureRow, Observation } from './observation.ts';

const SERIES = /^evalwatch_prompt_failures_total\{project="([^"]*)",error_id="([^"]*)"\}$/;

export function errorTotalsOf(samples: ReadonlyMap<string, number>): ErrorTotals {
  const totals = new Map<string, number>();
  for (const [series, count] of samples) {
    const [, project, errorId] = SERIES.exec(series) ?? [];
    if (project === undefined || errorId === undefined || count === 0) continue;
    totals.set(keyOf(project, errorId), count);
  }
  return totals;
}

export function storedErrorTotals({ projects }: StoreSnapshot): ErrorTotals {
  return new Map(
    projects.flatMap(({ project, listings }) =>
      (listings.get('prompt')?.errors ?? []).map(
        ({ label, count }) => [keyOf(project, label), count] as const,
      ),
    ),
  );
}

/**
 * Compares the counted failures with the settled ones. Services of the tests have fewer error_ids than a project may have
 * labels, and none with a character that is escaped.
 */
export function checkErrorTotals({ failures, errorTotals }: Observation): readonly string[] {
  if (errorTotals === undefined) return [];
  const settled = failures.filter((row) => row.settled);
  const groups = Map.groupBy(settled, (row) => keyOf(row.project, errorIdOf(row)));
  return [...new Set([...groups.keys(), ...errorTotals.keys()])].flatMap((key) => {
    const counted = errorTotals.get(key);
    const expected = groups.get(key)?.length;
    return counted === expected
      ? []
      : [`failures with the error_id ${key}: ${counted} counted, ${expected} settled`];
  });
}

function errorIdOf({ error_info }: FailureRow): string {
  const { error_id } = (error_info ?? {}) as { readonly error_id?: string | null };
  return error_id ?? 'none';
}

function keyOf(project: string, errorId: string): string {
  return `${errorId} of "${project}"`;
}

import type { StoreReader, TransitionRow } from '../monitor/ports/store.ts';

/** Maximum number of rows in memory. */
const PAGE_SIZE = 5000;
/** Position after every settlement, so that a query returns none. */
const NO_SETTLEMENTS = Number.MAX_SAFE_INTEGER;

export interface TransitionFilter {
  readonly project?: string | undefined;
  /** Epoch ms. */
  readonly since?: number | undefined;
}

/** Returns the id of the newest transition ever recorded; 0 before the first. */
export async function newestTransitionId(reader: StoreReader): Promise<number> {
  const all = { transition: Number.MAX_SAFE_INTEGER, settlement: NO_SETTLEMENTS };
  return (await reader.events(all, 1)).end.transition;
}

/** Yields pages of the transitions after this id, oldest first, up to the newest one. */
export async function* readTransitionsAfter(
  reader: StoreReader,
  transition: number,
  { project, since }: TransitionFilter,
): AsyncGenerator<{ readonly rows: readonly TransitionRow[]; readonly last: number }> {
  let after = transition;
  while (true) {
    // A page begins where the one before it ended.
    const page = await reader.events({ transition: after, settlement: NO_SETTLEMENTS }, PAGE_SIZE);
    const last = page.transitions.at(-1)?.transitionId;
    if (last === undefined) return;
    const rows = page.transitions.filter(
      (row) =>
        (project === undefined || row.project === project) &&
        (since === undefined || row.at >= since),
    );
    yield { rows, last };
    after = last;
  }
}

import type { StoreReader, TransitionRow } from '../monitor/ports/store.ts';

/** Rows that are held at a time. */
const PAGE = 5000;
/** No settlement comes after it. */
const NO_SETTLEMENTS = Number.MAX_SAFE_INTEGER;

export interface TransitionFilter {
  readonly project?: string | undefined;
  /** Epoch ms. */
  readonly since?: number | undefined;
}

/** The number of the newest transition that there ever was, 0 before the first. */
export async function newestTransitionId(reader: StoreReader): Promise<number> {
  const all = { transition: Number.MAX_SAFE_INTEGER, settlement: NO_SETTLEMENTS };
  return (await reader.events(all, 1)).end.transition;
}

/** Pages of the transitions after one of this number, oldest first; it ends with the newest that is there. */
export async function* readTransitionsAfter(
  reader: StoreReader,
  transition: number,
  { project, since }: TransitionFilter,
): AsyncGenerator<{ readonly rows: readonly TransitionRow[]; readonly last: number }> {
  let after = transition;
  while (true) {
    // A page begins where the one before it ended.
    const page = await reader.events({ transition: after, settlement: NO_SETTLEMENTS }, PAGE);
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

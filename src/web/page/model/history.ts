import type { Status } from '../../../domain/status.ts';
import type { MoveCount } from '../../../monitor/ports/store.ts';

export const SPANS = 96;
export const SPAN_MS = 15 * 60 * 1000;

/** How many prompts were in each status at the end of each span of the last day. */
export interface StatusHistory {
  /** Where the first span begins, epoch ms. */
  readonly since: number;
  /** From when on it is known, epoch ms. */
  readonly knownSince: number;
  /** Oldest first; undefined where nothing is known. */
  readonly spans: readonly (ReadonlyMap<Status, number> | undefined)[];
}

/** Where the first of {@link SPANS} spans begins, the last of which holds `now`. Epoch ms. */
export function historyStart(now: number): number {
  return Math.floor(now / SPAN_MS) * SPAN_MS - (SPANS - 1) * SPAN_MS;
}

/**
 * Goes back from the counts of now, undoing the moves of each span (nothing is stored for it). Prompts that are gone by
 * now are left out of the whole of it.
 */
export function statusHistory(
  counts: ReadonlyMap<Status, number>,
  moves: readonly MoveCount[],
  { since, knownSince }: Pick<StatusHistory, 'since' | 'knownSince'>,
): StatusHistory {
  const bySpan = Map.groupBy(moves, ({ span }) => Math.min(span, SPANS - 1));
  const spans: (ReadonlyMap<Status, number> | undefined)[] = [];
  let current = counts;
  for (let span = SPANS - 1; span >= 0; span -= 1) {
    const isKnown = since + (span + 1) * SPAN_MS > knownSince;
    spans.unshift(isKnown ? current : undefined);
    current = before(current, bySpan.get(span) ?? []);
  }
  return { since, knownSince, spans };
}

function before(
  after: ReadonlyMap<Status, number>,
  moves: readonly MoveCount[],
): ReadonlyMap<Status, number> {
  if (moves.length === 0) return after;
  const counts = new Map(after);
  const add = (status: Status, count: number) =>
    counts.set(status, (counts.get(status) ?? 0) + count);
  for (const { from, to, listed } of moves) {
    add(to, -listed);
    if (from !== 'NEW') add(from, listed);
  }
  return new Map(Array.from(counts, ([status, count]) => [status, Math.max(0, count)]));
}

import type { Status } from '../../../domain/status.ts';
import type { MoveCount } from '../../../monitor/ports/store.ts';

export const SPANS = 96;
export const SPAN_MS = 15 * 60 * 1000;

/** Number of prompts in each status at the end of each span of the last day. */
export interface StatusHistory {
  /** Begin of the first span, epoch ms. */
  readonly since: number;
  /** Time before which the counts are unknown, epoch ms. */
  readonly knownSince: number;
  /** Oldest first; undefined for a span whose counts are unknown. */
  readonly spans: readonly (ReadonlyMap<Status, number> | undefined)[];
}

/** Begin of the first of {@link SPANS} spans, of which the last one contains `now`. Epoch ms. */
export function historyStart(now: number): number {
  return Math.floor(now / SPAN_MS) * SPAN_MS - (SPANS - 1) * SPAN_MS;
}

/**
 * Computes the history backwards: from the current counts, it undoes the moves of each span. So the store needs no
 * counts of the past. Prompts that are gone by now are left out of all spans.
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

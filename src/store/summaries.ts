import type { Kind, UnfinishedStatus } from '../domain/status.ts';
import { lostOldest, nextSummary, type Summary } from '../domain/summary.ts';
import type { PollCommit } from '../monitor/ports/store.ts';

/** `known` of a `KnownProject`: the summaries that were stored under its token. */
export class KnownSummaries {
  readonly of: Readonly<Record<Kind, Summary>>;

  constructor(of: Readonly<Record<Kind, Summary>>) {
    this.of = of;
  }
}

/**
 * Computes the summary of each listing after a poll, provided that the project still has the poll's token.
 * @param oldestOthers finds the earliest `since` of the records that the poll does not change, in these statuses
 */
export async function summariesAfter(
  { at, listings }: PollCommit,
  known: KnownSummaries,
  oldestOthers: (kind: Kind, statuses: readonly UnfinishedStatus[]) => Promise<Summary['oldest']>,
): Promise<ReadonlyMap<Kind, Summary>> {
  const after = new Map<Kind, Summary>();
  for (const [kind, { summary }] of listings) {
    const before = known.of[kind];
    const lost = lostOldest(before, summary);
    const others = lost.length > 0 ? await oldestOthers(kind, lost) : undefined;
    after.set(kind, nextSummary(before, summary, at, others));
  }
  return after;
}

import type { KnownRecord } from './record.ts';
import {
  isUnfinished,
  UNFINISHED_STATUSES,
  type Origin,
  type Status,
  type UnfinishedStatus,
} from './status.ts';

/**
 * Figures of a listing that scrapes show. A store keeps them as JSON and changes them with each commit, so that it never counts
 * records; `{}` before the first one. Times are epoch ms.
 */
export interface Summary {
  readonly baselined?: boolean;
  /** Number of records that are not gone, by status. */
  readonly counts?: Readonly<Partial<Record<Status, number>>>;
  /** Number of records in `counts` that the last complete listing lacked. */
  readonly missing?: number;
  /** Number of times that a record became gone. */
  readonly gone?: number;
  /** Time of the newest transition to FAILED. */
  readonly failedAt?: number | undefined;
  /** The earliest `since` of the records in each status in which a record can wait. */
  readonly oldest?: Readonly<Partial<Record<UnfinishedStatus, number | undefined>>>;
  /** Number of transitions by pair of statuses. */
  readonly totals?: readonly Total[];
  /** Whether the next complete listing of prompts can finish an experiment, even without a change. */
  readonly finishing?: boolean;
}

type Total = readonly [from: Origin, to: Status, count: number];

/** What the changes of a listing add to its summary. */
export class SummaryChange {
  /** By how much each count grows. */
  readonly counts = new Map<Status, number>();
  missing = 0;
  gone = 0;
  /** The earliest `since` in each status of the changed records as they were before, and as they are now. */
  readonly oldestBefore = new Map<UnfinishedStatus, number>();
  readonly oldest = new Map<UnfinishedStatus, number>();
  /** By pair of statuses. */
  readonly totals = new Map<string, Total>();

  /** Adds a record that replaces a stored one; undefined if it is new. */
  addRecord(before: KnownRecord | undefined, record: KnownRecord): void {
    if (before?.gone === false) {
      this.#count(before, -1);
      notice(this.oldestBefore, before);
      if (record.gone) this.gone += 1;
    }
    if (!record.gone) {
      this.#count(record, 1);
      notice(this.oldest, record);
    }
  }

  #count({ status, missing }: KnownRecord, by: 1 | -1): void {
    this.counts.set(status, (this.counts.get(status) ?? 0) + by);
    if (missing > 0) this.missing += by;
  }

  addTransition(from: Origin, to: Status): void {
    addTotal(this.totals, [from, to, 1]);
  }
}

/**
 * Returns the statuses whose longest wait ends and in which records still wait. The store has to look for the longest wait among
 * the records that do not change.
 */
export function lostOldest(before: Summary, change: SummaryChange): readonly UnfinishedStatus[] {
  return UNFINISHED_STATUSES.filter((status) => {
    const waiting = (before.counts?.[status] ?? 0) + (change.counts.get(status) ?? 0);
    return waiting > 0 && endsLongest(status, before, change);
  });
}

/** Whether the longest wait ends, and no changed record has waited as long. */
function endsLongest(status: UnfinishedStatus, before: Summary, change: SummaryChange): boolean {
  const longest = before.oldest?.[status] ?? Infinity;
  const was = change.oldestBefore.get(status);
  const is = change.oldest.get(status) ?? Infinity;
  return was !== undefined && was <= longest && is > longest;
}

/**
 * Returns the summary after a commit at this time, epoch ms.
 * @param others the earliest `since` of the records that do not change, in each status of `lostOldest` that such a record has
 */
export function nextSummary(
  before: Summary,
  change: SummaryChange,
  at: number,
  others: Summary['oldest'] = {},
): Summary {
  const counts = { ...before.counts };
  for (const [status, by] of change.counts) counts[status] = (counts[status] ?? 0) + by;
  const oldest = { ...before.oldest };
  for (const status of UNFINISHED_STATUSES) {
    if (endsLongest(status, before, change)) oldest[status] = others[status];
  }
  for (const [status, since] of change.oldest) {
    oldest[status] = Math.min(oldest[status] ?? since, since);
  }
  const totals = new Map<string, Total>();
  for (const total of before.totals ?? []) addTotal(totals, total);
  for (const total of change.totals.values()) addTotal(totals, total);
  return {
    baselined: true,
    counts,
    missing: (before.missing ?? 0) + change.missing,
    gone: (before.gone ?? 0) + change.gone,
    failedAt: change.totals.values().some(([, to]) => to === 'FAILED') ? at : before.failedAt,
    oldest,
    totals: [...totals.values()],
  };
}

function notice(earliest: Map<UnfinishedStatus, number>, { status, since }: KnownRecord): void {
  if (isUnfinished(status)) earliest.set(status, Math.min(earliest.get(status) ?? since, since));
}

function addTotal(totals: Map<string, Total>, [from, to, count]: Total): void {
  const pair = `${from} ${to}`;
  totals.set(pair, [from, to, (totals.get(pair)?.[2] ?? 0) + count]);
}

import type { KnownRecord } from '../../../domain/record.ts';
import {
  statusesOf,
  UNFINISHED_STATUSES,
  type Kind,
  type Origin,
  type Status,
  type UnfinishedStatus,
} from '../../../domain/status.ts';
import type { Changes } from '../../../domain/transition.ts';
import type { ListingSnapshot } from '../../../monitor/ports/store.ts';

/** Figures of a listing for the scrape, stored in the row of its project. Empty before the first listing. */
export interface Summary {
  readonly baselined?: boolean;
  readonly missing?: number;
  readonly gone?: number;
  readonly failedAt?: number | undefined;
  readonly counts?: Readonly<Partial<Record<Status, number>>>;
  /** Start of the longest wait in each waiting status, epoch ms. */
  readonly oldest?: Readonly<Partial<Record<UnfinishedStatus, number | undefined>>>;
  readonly totals?: readonly Total[];
}

type Total = readonly [from: Origin, to: Status, count: number];

/**
 * Returns the summary after a commit at this time, epoch ms. `before` has the changed records that were known, and
 * `oldestOthers` the start of the longest wait among all other records, for the statuses of `lostOldest`.
 */
export function nextSummary(
  old: Summary,
  changes: Changes,
  before: ReadonlyMap<string, KnownRecord>,
  oldestOthers: ReadonlyMap<UnfinishedStatus, number | undefined>,
  at: number,
): Summary {
  const counts = { ...old.counts };
  let missing = old.missing ?? 0;
  const count = (record: KnownRecord | undefined, by: 1 | -1) => {
    if (record === undefined || record.gone) return;
    counts[record.status] = (counts[record.status] ?? 0) + by;
    if (record.missing > 0) missing += by;
  };
  for (const record of changes.records) {
    count(before.get(record.id), -1);
    count(record, 1);
  }
  const oldest = UNFINISHED_STATUSES.map((status) => {
    const others = oldestOthers.has(status) ? oldestOthers.get(status) : old.oldest?.[status];
    return [status, earliest(others, oldestOf(changes.records, status))] as const;
  });
  return {
    baselined: old.baselined === true || changes.baseline,
    missing,
    gone: (old.gone ?? 0) + changes.gone.length,
    failedAt: changes.transitions.some(({ to }) => to === 'FAILED') ? at : old.failedAt,
    counts,
    oldest: Object.fromEntries(oldest),
    totals: addTotals(old.totals ?? [], changes),
  };
}

function addTotals(old: readonly Total[], { transitions }: Changes): readonly Total[] {
  const totals = new Map(old.map((total) => [`${total[0]} ${total[1]}`, total]));
  for (const { from, to } of transitions) {
    const pair = `${from} ${to}`;
    totals.set(pair, [from, to, (totals.get(pair)?.[2] ?? 0) + 1]);
  }
  return [...totals.values()];
}

/** Returns the statuses whose longest waiting record changes. The next one has to be found among all other records. */
export function lostOldest(
  old: Summary,
  changes: Changes,
  before: ReadonlyMap<string, KnownRecord>,
): readonly UnfinishedStatus[] {
  return UNFINISHED_STATUSES.filter((status) =>
    changes.records.some(({ id }) => {
      const known = before.get(id);
      return known?.status === status && !known.gone && known.since <= (old.oldest?.[status] ?? 0);
    }),
  );
}

/** Returns the start of the longest wait of these records in this status, epoch ms; undefined if none waits. */
export function oldestOf(
  records: Iterable<KnownRecord>,
  status: UnfinishedStatus,
): number | undefined {
  let oldest: number | undefined;
  for (const record of records) {
    if (record.status === status && !record.gone) oldest = earliest(oldest, record.since);
  }
  return oldest;
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

export function toListingSnapshot(kind: Kind, summary: Summary): ListingSnapshot {
  const { counts, missing = 0, gone: goneTotal = 0, failedAt: lastFailureAt, oldest } = summary;
  // Most projects have no datasets; all of them share one empty snapshot.
  if (counts === undefined) return EMPTY[kind];
  return {
    counts: new Map(statusesOf(kind).map((status) => [status, counts[status] ?? 0])),
    missing,
    goneTotal,
    transitions: summary.totals ?? [],
    lastFailureAt,
    oldest: new Map(
      UNFINISHED_STATUSES.flatMap((status) => {
        const since = oldest?.[status];
        return since === undefined ? [] : [[status, since] as const];
      }),
    ),
    errors: [],
  };
}

const EMPTY: Readonly<Record<Kind, ListingSnapshot>> = {
  prompt: emptySnapshot('prompt'),
  dataset: emptySnapshot('dataset'),
};

function emptySnapshot(kind: Kind): ListingSnapshot {
  return {
    counts: new Map(statusesOf(kind).map((status) => [status, 0])),
    missing: 0,
    goneTotal: 0,
    transitions: [],
    lastFailureAt: undefined,
    oldest: new Map(),
    errors: [],
  };
}

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { KnownRecord, Listing } from '../../../src/domain/record.ts';
import {
  DATASET_STATUSES,
  type Status,
  UNFINISHED_STATUSES,
  type UnfinishedStatus,
} from '../../../src/domain/status.ts';
import { lostOldest, nextSummary, type Summary } from '../../../src/domain/summary.ts';
import { compareListing, type Changes } from '../../../src/domain/transition.ts';

/** A listing at a time: what it shows of five records, and whether it is complete. Times also go back. */
const shown = fc.record({
  at: fc.integer({ min: 1, max: 9 }),
  items: fc.dictionary(
    fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    fc.constantFrom<Status | 'no status'>(...DATASET_STATUSES, 'no status'),
    { noNullPrototype: true },
  ),
  name: fc.constantFrom('one', 'other'),
  complete: fc.boolean(),
});

type Shown = typeof shown extends fc.Arbitrary<infer Value> ? Value : never;

function listingOf({ items, name, complete }: Shown): Listing {
  const records: Listing['records'] = new Map(
    Object.entries(items).flatMap(([id, status]) =>
      status === 'no status'
        ? []
        : [[id, { id, status, statusRaw: undefined, name, timestamp: undefined }] as const],
    ),
  );
  const idsWithoutStatus = new Set(Object.keys(items).filter((id) => !records.has(id)));
  return { records, idsWithoutStatus, complete, anomalies: [] };
}

/** The summary of a listing whose commits were these, counted anew from its records. */
function recount(
  records: ReadonlyMap<string, KnownRecord>,
  commits: readonly (readonly [changes: Changes, at: number])[],
) {
  const listed = [...records.values()].filter(({ gone }) => !gone);
  const moves = commits.flatMap(([{ transitions }, at]) =>
    transitions.map(({ from, to }) => ({ from, to, at })),
  );
  return {
    baselined: commits.length > 0,
    counts: Object.fromEntries(
      DATASET_STATUSES.map((each) => [each, listed.filter(({ status }) => status === each).length]),
    ),
    missing: listed.filter(({ missing }) => missing > 0).length,
    gone: commits.reduce((sum, [{ gone }]) => sum + gone.length, 0),
    failedAt: moves.findLast(({ to }) => to === 'FAILED')?.at,
    oldest: Object.fromEntries(
      UNFINISHED_STATUSES.map((status) => [status, oldestIn(listed, status)]),
    ),
    totals: Object.fromEntries(
      Map.groupBy(moves, ({ from, to }) => `${from} ${to}`)
        .entries()
        .map(([pair, of]) => [pair, of.length]),
    ),
  };
}

function oldestIn(records: Iterable<KnownRecord>, status: UnfinishedStatus): number | undefined {
  const times = Iterator.from(records)
    .filter((record) => record.status === status && !record.gone)
    .map(({ since }) => since)
    .toArray();
  return times.length === 0 ? undefined : Math.min(...times);
}

function plain({ counts, oldest, totals = [], ...others }: Summary) {
  return {
    ...others,
    counts: Object.fromEntries(DATASET_STATUSES.map((status) => [status, counts?.[status] ?? 0])),
    oldest: Object.fromEntries(UNFINISHED_STATUSES.map((status) => [status, oldest?.[status]])),
    totals: Object.fromEntries(totals.map(([from, to, count]) => [`${from} ${to}`, count])),
  };
}

it('a summary is what counting all records gives, after each commit of any history', async () => {
  const history = fc.array(shown, { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(history, async (listings) => {
      const records = new Map<string, KnownRecord>();
      const commits: (readonly [Changes, number])[] = [];
      let summary: Summary = {};
      for (const each of listings) {
        const known = { baselined: commits.length > 0, records };
        const options = { at: each.at, missingAfter: 2 };
        const { changes } = await compareListing(known, listingOf(each), options);
        for (const record of changes.records) records.set(record.id, record);
        commits.push([changes, each.at]);
        const changed = new Set(changes.records.map(({ id }) => id));
        const others = [...records.values()].filter(({ id }) => !changed.has(id));
        const oldest = lostOldest(summary, changes.summary).map((status) => {
          return [status, oldestIn(others, status)] as const;
        });
        const next = nextSummary(summary, changes.summary, each.at, Object.fromEntries(oldest));
        // As it is stored and read again.
        summary = JSON.parse(JSON.stringify(next)) as Summary;
        expect(plain(summary)).toEqual(recount(records, commits));
      }
    }),
    { numRuns: 500 },
  );
});

it('the next longest wait is looked for only after the longest one has ended', async () => {
  const record = (id: string, since: number): KnownRecord => {
    const texts = { statusRaw: undefined, name: 'one', timestamp: undefined };
    return { id, status: 'RUNNING', since, missing: 0, gone: false, ...texts };
  };
  const records = new Map([
    ['a', record('a', 10)],
    ['b', record('b', 20)],
  ]);
  const lost = async (items: Shown['items'], name: Shown['name'] = 'one') => {
    const listing = listingOf({ at: 30, items, name, complete: false });
    const options = { at: 30, missingAfter: 2 };
    const { changes } = await compareListing({ baselined: true, records }, listing, options);
    return lostOldest({ counts: { RUNNING: 2 }, oldest: { RUNNING: 10 } }, changes.summary);
  };
  expect(await lost({ a: 'COMPLETED' })).toEqual(['RUNNING']);
  expect(await lost({ b: 'COMPLETED' })).toEqual([]);
  expect(await lost({ a: 'COMPLETED', b: 'COMPLETED' })).toEqual([]);
  expect(await lost({ a: 'RUNNING' }, 'other')).toEqual([]);
});

import { describe, expect, it } from 'vitest';
import type { KnownListing, KnownRecord, Listing } from '../../../src/domain/record.ts';
import {
  DATASET_STATUSES,
  PROMPT_STATUSES,
  transitionPairs,
  type Status,
} from '../../../src/domain/status.ts';
import { type Changes, compareListing } from '../../../src/domain/transition.ts';

const options = { at: 5000, missingAfter: 3 };

function known(...records: readonly Partial<KnownRecord>[]): KnownListing {
  return { baselined: true, records: new Map(records.map((r) => [r.id ?? 'a', record(r)])) };
}

function record(fields: Partial<KnownRecord>): KnownRecord {
  return {
    id: 'a',
    status: 'PENDING',
    statusRaw: undefined,
    name: undefined,
    timestamp: undefined,
    since: 1000,
    missing: 0,
    gone: false,
    ...fields,
  };
}

function listing(statuses: Record<string, Status>, more: Partial<Listing> = {}): Listing {
  const records = new Map(
    Object.entries(statuses).map(([id, status]) => {
      const statusRaw = status === 'UNKNOWN' ? 'PAUSED' : undefined;
      return [id, { id, status, statusRaw, name: undefined, timestamp: undefined }];
    }),
  );
  return { records, idsWithoutStatus: new Set(), complete: true, anomalies: [], ...more };
}

const everyPair = DATASET_STATUSES.flatMap((from) =>
  DATASET_STATUSES.map((to) => [from, to] as const),
);

describe('a record that was seen before', () => {
  it.each(everyPair.filter(([from, to]) => from !== to))(
    'moves from %s to %s',
    async (from, to) => {
      const before = known({ status: from });

      const { changes } = await compareListing(before, listing({ a: to }), options);

      expect(changes.transitions).toEqual([{ id: 'a', name: undefined, from, to, heldMs: 4000 }]);
      expect(changes.records).toMatchObject([{ id: 'a', status: to, since: 5000, missing: 0 }]);
      expect(changes.baseline).toBe(false);
    },
  );

  it.each(DATASET_STATUSES)('changes nothing if it stays %s', async (status) => {
    const statusRaw = status === 'UNKNOWN' ? 'PAUSED' : undefined;
    const { changes } = await compareListing(
      known({ status, statusRaw }),
      listing({ a: status }),
      options,
    );

    expect(told(changes)).toBe('nothing');
  });
});

/** Formats transitions, changed records and records that are gone. */
function told({ baseline, transitions, records, gone }: Changes): string {
  const texts = [
    ...transitions.map(({ id, from, to, heldMs, wasMissing }) => {
      return `${id} ${from}>${to} ${heldMs}${wasMissing === true ? ' wasMissing' : ''}`;
    }),
    ...records.map(({ id, status, since, missing, gone: isGone }) => {
      return `${id} ${status} since ${since} missing ${missing}${isGone ? ' gone' : ''}`;
    }),
    ...gone.map(({ id }) => `${id} is gone`),
  ];
  return `${baseline ? 'baseline: ' : ''}${texts.join(', ') || 'nothing'}`;
}

const GONE = { missing: 3, gone: true };
const paused = { status: 'UNKNOWN', statusRaw: 'PAUSED' } as const;
const first = { baselined: false, records: new Map<string, KnownRecord>() };

it.each<readonly [KnownListing, Listing, string]>([
  // The raw status, the name, the timestamp or a label alone changes no time.
  [
    known({ ...paused, statusRaw: 'X' }),
    listing({ a: 'UNKNOWN' }),
    'a UNKNOWN since 1000 missing 0',
  ],
  [known({ ...paused, name: 'old' }), listing({ a: 'UNKNOWN' }), 'a UNKNOWN since 1000 missing 0'],
  [
    known({ ...paused, timestamp: '1' }),
    listing({ a: 'UNKNOWN' }),
    'a UNKNOWN since 1000 missing 0',
  ],
  [known({ experiment: 'e' }), listing({ a: 'PENDING' }), 'a PENDING since 1000 missing 0'],
  [known({ dataset: 'd' }), listing({ a: 'PENDING' }), 'a PENDING since 1000 missing 0'],
  [known({ metric: 'm' }), listing({ a: 'PENDING' }), 'a PENDING since 1000 missing 0'],
  // The clock was set back.
  [
    known({ since: 9000 }),
    listing({ a: 'RUNNING' }),
    'a PENDING>RUNNING 0, a RUNNING since 5000 missing 0',
  ],
  // The first listing is the baseline, also when it is empty.
  [first, listing({ a: 'FAILED' }), 'baseline: a FAILED since 5000 missing 0'],
  [first, listing({}), 'baseline: nothing'],
  // A record is missing, then gone, once.
  [known({}), listing({}), 'a PENDING since 1000 missing 1'],
  [known({ missing: 1 }), listing({}), 'a PENDING since 1000 missing 2'],
  [known({ missing: 2 }), listing({}), 'a PENDING since 1000 missing 3 gone, a is gone'],
  [known(GONE), listing({}), 'nothing'],
  // It is not missing from a listing with an item that has no usable id, or its id without a status.
  [known({ missing: 2 }), listing({}, { complete: false }), 'nothing'],
  [known({}), listing({}, { idsWithoutStatus: new Set(['a']) }), 'nothing'],
  [
    known({ missing: 2 }),
    listing({}, { idsWithoutStatus: new Set(['a']) }),
    'a PENDING since 1000 missing 0',
  ],
  [known(), listing({}, { idsWithoutStatus: new Set(['b']) }), 'nothing'],
  // It comes back.
  [known({ missing: 2 }), listing({ a: 'PENDING' }), 'a PENDING since 1000 missing 0'],
  [
    known({ missing: 2 }),
    listing({ a: 'RUNNING' }),
    'a PENDING>RUNNING 4000 wasMissing, a RUNNING since 5000 missing 0',
  ],
  [
    known(GONE),
    listing({ a: 'RUNNING' }),
    'a PENDING>RUNNING 4000 wasMissing, a RUNNING since 5000 missing 0',
  ],
  [known(GONE), listing({ a: 'PENDING' }), 'a PENDING since 1000 missing 0'],
  // It is new.
  ...PROMPT_STATUSES.map((status): readonly [KnownListing, Listing, string] => {
    const texts = `b NEW>${status} undefined, b ${status} since 5000 missing 0`;
    return [known(), listing({ b: status }), texts];
  }),
])('from %o a listing of %o makes: %s', async (before, shown, expected) => {
  const { changes } = await compareListing(before, shown, options);
  expect(told(changes)).toBe(expected);
  const observed = changes.records.filter(({ id }) => shown.records.has(id));
  expect(observed).toMatchObject(observed.map(({ id }) => shown.records.get(id)));
});

it('a record is gone at once where missing_after is 1', async () => {
  const { changes } = await compareListing(known({}), listing({}), { at: 1, missingAfter: 1 });
  expect(told(changes)).toBe('a PENDING since 1000 missing 1 gone, a is gone');
});

describe('the missing ids', () => {
  const before = known(
    { id: 'a', missing: 2 },
    { id: 'b' },
    { id: 'c', missing: 1 },
    { id: 'd' },
    { id: 'e', missing: 3, gone: true },
  );
  const shown = { c: 'PENDING', d: 'PENDING' } as const;

  it('are those that are missing once the changes are stored', async () => {
    const { changes, missing } = await compareListing(before, listing(shown), options);
    expect(changes.gone).toMatchObject([{ id: 'a' }]);
    expect(missing).toEqual(['b']);
  });

  it('are all that lack in a listing that is not complete, though it counts none', async () => {
    const part = listing(shown, { complete: false });
    const { changes, missing } = await compareListing(before, part, options);
    expect(changes.records.map(({ id }) => id)).toEqual(['c']);
    expect(missing).toEqual(['a', 'b']);
  });
});

it('other work runs while many records are compared', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 30_000 }, (_, index) => [`p${index}`, 'RUNNING' as const]),
  );
  let turns = 0;
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const { changes } = await compareListing(first, listing(many), options);
  const compared = turns;
  const records = new Map(changes.records.map((each) => [each.id, each]));
  await compareListing({ baselined: true, records }, listing({}), options);
  clearImmediate(next);
  expect(compared).toBeGreaterThanOrEqual(6);
  expect(turns - compared).toBeGreaterThanOrEqual(6);
});

it('ids that are names of object properties are treated like any other', async () => {
  const hostile = JSON.parse('{"__proto__": "FAILED", "constructor": "RUNNING"}') as Record<
    string,
    Status
  >;

  const { changes } = await compareListing(known(), listing(hostile), options);

  expect(changes.transitions.map((transition) => transition.id)).toEqual([
    '__proto__',
    'constructor',
  ]);
});

it('transitionPairs returns 25 pairs for prompts and 36 for datasets', () => {
  expect(transitionPairs('prompt')).toHaveLength(25);
  expect(transitionPairs('dataset')).toHaveLength(36);
});

import { describe, expect, it } from 'vitest';
import type { KnownListing, KnownRecord, Listing } from '../../../src/domain/record.ts';
import {
  DATASET_STATUSES,
  PROMPT_STATUSES,
  transitionPairs,
  type Status,
} from '../../../src/domain/status.ts';
import { missingIds, detectRepeatedAbsence } from '../../../src/domain/transition.ts';
import { detectChanges, takeAtOnce } from '../../support/at-once.ts';

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
  it.each(everyPair.filter(([from, to]) => from !== to))('moves from %s to %s', (from, to) => {
    const before = known({ status: from });

    const changes = detectChanges(before, listing({ a: to }), options);

    expect(changes.transitions).toEqual([{ id: 'a', name: undefined, from, to, heldMs: 4000 }]);
    expect(changes.records).toMatchObject([{ id: 'a', status: to, since: 5000, missing: 0 }]);
    expect(changes.baseline).toBe(false);
  });

  it.each(DATASET_STATUSES)('changes nothing if it stays %s', (status) => {
    const statusRaw = status === 'UNKNOWN' ? 'PAUSED' : undefined;
    const changes = detectChanges(known({ status, statusRaw }), listing({ a: status }), options);

    expect(changes).toEqual({ baseline: false, records: [], transitions: [], gone: [] });
  });

  it.each([
    ['raw status', { statusRaw: 'QUEUED' }],
    ['name', { name: 'old' }],
    ['timestamp', { timestamp: '2025-11-21T10:00:00Z' }],
  ])('keeps its time when only its %s changes', (_, old) => {
    const now = { status: 'UNKNOWN', statusRaw: 'PAUSED' } as const;

    const changes = detectChanges(known({ ...now, ...old }), listing({ a: 'UNKNOWN' }), options);

    expect(changes.transitions).toEqual([]);
    expect(changes.records).toEqual([record(now)]);
  });

  it('has wasMissing in its transition if it was missing or gone before', () => {
    const missing = detectChanges(known({ missing: 2 }), listing({ a: 'RUNNING' }), options);
    const gone = detectChanges(
      known({ missing: 3, gone: true }),
      listing({ a: 'RUNNING' }),
      options,
    );

    expect(missing.transitions).toMatchObject([{ wasMissing: true }]);
    expect(gone.transitions).toMatchObject([{ wasMissing: true }]);
  });

  it('has a held time of 0 if the clock was set back', () => {
    const changes = detectChanges(known({ since: 9000 }), listing({ a: 'RUNNING' }), options);

    expect(changes.transitions).toMatchObject([{ heldMs: 0 }]);
  });
});

describe('a first listing', () => {
  it('is the baseline: statuses without transitions', () => {
    const nothing = { baselined: false, records: new Map() };

    const changes = detectChanges(nothing, listing({ a: 'FAILED', b: 'RUNNING' }), options);

    expect(changes.baseline).toBe(true);
    expect(changes.transitions).toEqual([]);
    expect(changes.records).toMatchObject([
      { id: 'a', status: 'FAILED', since: 5000 },
      { id: 'b', status: 'RUNNING', since: 5000 },
    ]);
  });

  it('is a baseline also when it is empty', () => {
    const nothing = { baselined: false, records: new Map() };

    expect(detectChanges(nothing, listing({}), options).baseline).toBe(true);
  });
});

describe('a record first seen after the baseline', () => {
  it.each(PROMPT_STATUSES)('comes from NEW as %s', (status) => {
    const changes = detectChanges(known(), listing({ b: status }), options);

    expect(changes.transitions).toMatchObject([{ id: 'b', from: 'NEW', to: status }]);
    expect(changes.transitions[0]?.heldMs).toBeUndefined();
  });
});

describe('a record that a listing lacks', () => {
  it('is missing, then gone after missing_after complete listings in a row', () => {
    const seen = [0, 1, 2].map((missing) =>
      detectChanges(known({ missing }), listing({}), options),
    );

    expect(seen.map((changes) => changes.records[0]?.missing)).toEqual([1, 2, 3]);
    expect(seen.map((changes) => changes.gone.length)).toEqual([0, 0, 1]);
    expect(seen.flatMap((changes) => changes.transitions)).toEqual([]);
  });

  it('is gone at once where missing_after is 1', () => {
    expect(detectChanges(known({}), listing({}), { at: 1, missingAfter: 1 }).gone).toHaveLength(1);
  });

  it('is not missing from a listing with an item that has no usable id', () => {
    const changes = detectChanges(known({ missing: 2 }), listing({}, { complete: false }), options);

    expect(changes.records).toEqual([]);
  });

  it('is counted gone only once', () => {
    const changes = detectChanges(known({ missing: 3, gone: true }), listing({}), options);

    expect(changes).toMatchObject({ records: [], gone: [] });
  });

  it('is counted from 0 again once it is listed in between', () => {
    const changes = detectChanges(known({ missing: 2 }), listing({ a: 'PENDING' }), options);

    expect(changes.records).toMatchObject([{ missing: 0, since: 1000 }]);
    expect(changes.transitions).toEqual([]);
  });
});

describe('an invalid item with a good id', () => {
  it('counts as present: its record keeps its status and is not missing', () => {
    const present = listing({}, { idsWithoutStatus: new Set(['a']) });

    expect(detectChanges(known({ missing: 0 }), present, options).records).toEqual([]);
    expect(detectChanges(known({ missing: 2 }), present, options).records).toMatchObject([
      { status: 'PENDING', missing: 0, since: 1000 },
    ]);
  });

  it('creates no record for an unknown id', () => {
    const present = listing({}, { idsWithoutStatus: new Set(['b']) });

    expect(detectChanges(known(), present, options).records).toEqual([]);
  });
});

describe('a record that was gone and comes back', () => {
  it('moves from its last status to a different one', () => {
    const before = known({ status: 'RUNNING', missing: 3, gone: true });

    const changes = detectChanges(before, listing({ a: 'FAILED' }), options);

    expect(changes.transitions).toMatchObject([{ from: 'RUNNING', to: 'FAILED' }]);
    expect(changes.records).toMatchObject([{ gone: false, missing: 0, since: 5000 }]);
  });

  it('makes no transition if its status is the same', () => {
    const before = known({ status: 'FAILED', missing: 3, gone: true });

    const changes = detectChanges(before, listing({ a: 'FAILED' }), options);

    expect(changes.transitions).toEqual([]);
    expect(changes.records).toMatchObject([{ gone: false, since: 1000 }]);
  });
});

describe('a listing that is the same as the last one', () => {
  it('counts as one more listing without the missing records', () => {
    const before = known({ id: 'a', missing: 2 }, { id: 'b', missing: 0 });

    const changes = takeAtOnce(detectRepeatedAbsence(before, true, 3));

    expect(changes.gone).toMatchObject([{ id: 'a' }]);
    expect(changes.records).toHaveLength(1);
    expect(changes.transitions).toEqual([]);
  });

  it('counts no record as missing if the last listing was not complete', () => {
    expect(takeAtOnce(detectRepeatedAbsence(known({ missing: 2 }), false, 3)).records).toEqual([]);
  });
});

it('missingIds returns the ids that are missing after the changes', () => {
  const before = known({ id: 'a', missing: 2 }, { id: 'b' }, { id: 'c', missing: 1 }, { id: 'd' });

  const changes = detectChanges(before, listing({ c: 'PENDING', d: 'PENDING' }), options);

  expect(changes.gone).toMatchObject([{ id: 'a' }]);
  expect(takeAtOnce(missingIds(before, changes))).toEqual(['b']);
});

it('ids that are names of object properties are treated like any other', () => {
  const hostile = JSON.parse('{"__proto__": "FAILED", "constructor": "RUNNING"}') as Record<
    string,
    Status
  >;

  const changes = detectChanges(known(), listing(hostile), options);

  expect(changes.transitions.map((transition) => transition.id)).toEqual([
    '__proto__',
    'constructor',
  ]);
});

it('transitionPairs returns 25 pairs for prompts and 36 for datasets', () => {
  expect(transitionPairs('prompt')).toHaveLength(25);
  expect(transitionPairs('dataset')).toHaveLength(36);
});

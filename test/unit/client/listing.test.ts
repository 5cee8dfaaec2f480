import { describe, expect, it } from 'vitest';
import { createScrub } from '../../../src/client/secrets.ts';
import type { Listing } from '../../../src/domain/record.ts';
import type { Kind } from '../../../src/domain/status.ts';
import { ApiError } from '../../../src/monitor/errors.ts';
import { readListing } from '../../support/read-listing.ts';

const KEY = 'the-secret-key';
const scrub = createScrub([KEY]);

async function read(items: unknown, kind: Kind = 'prompt'): Promise<Listing> {
  const body = typeof items === 'string' ? items : JSON.stringify(items);
  return await readListing(Buffer.from(body), kind, scrub);
}

/** Reads these items beside a sound one, so that the list as a whole is valid. */
async function readBeside(...items: readonly unknown[]): Promise<Listing> {
  return await read([{ id: 'sound', status: 'PENDING' }, ...items]);
}

function reasons(listing: Pick<Listing, 'anomalies'>): readonly (readonly [string, number])[] {
  return listing.anomalies.flatMap(({ reason, indexes }) =>
    indexes.map((index) => [reason, index] as const),
  );
}

async function failure(items: unknown, kind?: Kind): Promise<ApiError> {
  try {
    await read(items, kind);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('it was read');
}

describe('an item', () => {
  it('is read with its texts and labels, and other fields are ignored', async () => {
    const texts = { name: 'one', timestamp: '3 o’clock' };
    const labels = { experiment: 'nightly 42', dataset: 'd-1', metric: 'exact_match' };
    const listing = await read([{ id: 'p1', status: 'RUNNING', ...texts, ...labels, extra: [1] }]);
    expect([...listing.records.values()]).toEqual([
      { id: 'p1', status: 'RUNNING', statusRaw: undefined, ...texts, ...labels },
    ]);
    expect(listing).toMatchObject({ complete: true, anomalies: [] });
  });

  it.each([
    ['absent', {}],
    ['null', { name: null, timestamp: null, experiment: null, dataset: null, metric: null }],
    ['empty', { experiment: '', dataset: '', metric: '' }],
    ['of another type', { name: 7, timestamp: ['now'], experiment: 7, dataset: ['d'], metric: {} }],
  ])('is valid with texts and labels that are %s, and has none', async (_, fields) => {
    const listing = await read([{ id: 'p1', status: 'RUNNING', ...fields }]);
    const texts = { name: undefined, timestamp: undefined };
    const labels = { experiment: undefined, dataset: undefined, metric: undefined };
    expect(listing.records.get('p1')).toMatchObject({ ...texts, ...labels });
    expect(listing.anomalies).toEqual([]);
  });

  it.each([
    ['null', null],
    ['a number', 1],
    ['a text', 'p1'],
    ['a list', [{ id: 'p1', status: 'RUNNING' }]],
    ['without an id', { status: 'RUNNING' }],
    ['with a number for an id', { id: 1, status: 'RUNNING' }],
    ['with an empty id', { id: '', status: 'RUNNING' }],
    ['with an id of 513 code points', { id: '😀'.repeat(513), status: 'RUNNING' }],
    ['with half a character in its id', { id: 'a\ud800', status: 'RUNNING' }],
    ['with U+0000 in its id', { id: 'a\u0000', status: 'RUNNING' }],
    ['with a key in its id', { id: `x-${KEY}`, status: 'RUNNING' }],
    ['with an encoded key in its id', { id: 'x-the%2Dsecret%2dkey', status: 'RUNNING' }],
  ])('that is %s is invalid and makes the listing incomplete', async (_, item) => {
    const listing = await readBeside(item);
    expect([...listing.records.keys()]).toEqual(['sound']);
    expect(reasons(listing)).toEqual([['invalid', 1]]);
    expect(listing).toMatchObject({ complete: false, idsWithoutStatus: new Set() });
    expect(JSON.stringify(listing.anomalies)).not.toContain('secret');
  });

  it.each([
    ['no status', {}],
    ['null', { status: null }],
    ['a number', { status: 1 }],
    ['an object', { status: { toString: 'FAILED' } }],
  ])('with a valid id and %s for a status is invalid, but counts as present', async (_, fields) => {
    const listing = await readBeside({ id: 'p1', ...fields });
    expect(reasons(listing)).toEqual([['invalid', 1]]);
    expect(listing).toMatchObject({ complete: true, idsWithoutStatus: new Set(['p1']) });
  });

  it.each(['__proto__', 'constructor', 'hasOwnProperty', '.', '..', ' ', 'a/b', '😀'.repeat(512)])(
    'can have the id %s',
    async (id) => {
      const listing = await read(
        `[{"id": ${JSON.stringify(id)}, "status": "FAILED", "__proto__": {"name": "x"}}]`,
      );
      expect(listing.records.get(id)).toMatchObject({ id, status: 'FAILED', name: undefined });
      expect(listing.anomalies).toEqual([]);
    },
  );
});

describe('a status', () => {
  it.each(['completed', 'CANCELLED', '', ' FAILED', 'NONE', 'UNKNOWN', 'NEW'])(
    'of %o is read as UNKNOWN and keeps its raw text',
    async (raw) => {
      const listing = await read([{ id: 'p1', status: raw }]);
      expect(listing.records.get('p1')).toMatchObject({ status: 'UNKNOWN', statusRaw: raw });
      expect(reasons(listing)).toEqual([['unknown_status', 0]]);
    },
  );

  it.each([{}, { status: null }])(
    'of a dataset is NONE when it is missing or null: %o',
    async (fields) => {
      const listing = await read([{ id: 'd1', ...fields }], 'dataset');
      expect(listing.records.get('d1')).toMatchObject({ status: 'NONE', statusRaw: undefined });
      expect(listing.anomalies).toEqual([]);
    },
  );

  it('of a dataset is invalid when it is a number', async () => {
    const listing = await read([{ id: 'd1' }, { id: 'd2', status: 0 }], 'dataset');
    expect(reasons(listing)).toEqual([['invalid', 1]]);
  });
});

describe('a duplicate id', () => {
  const states = (listing: Listing) => [...listing.records.values()].map(({ status }) => status);

  it('has the status of the last item', async () => {
    const listing = await read([
      { id: 'p1', status: 'RUNNING' },
      { id: 'p1', status: 'PENDING' },
      { id: 'p1', status: 'FAILED' },
    ]);
    expect(states(listing)).toEqual(['FAILED']);
    expect(reasons(listing)).toEqual([
      ['duplicate_id', 1],
      ['duplicate_id', 2],
    ]);
  });

  it('has the status of the last item that has one', async () => {
    const listing = await read([{ id: 'p1', status: 'RUNNING' }, { id: 'p1' }]);
    expect(states(listing)).toEqual(['RUNNING']);
    expect(reasons(listing)).toEqual([['invalid', 1]]);
  });

  it('is reported even if the first item with the id is invalid', async () => {
    const listing = await read([{ id: 'p1' }, { id: 'p1', status: 'RUNNING' }]);
    expect(reasons(listing)).toEqual([
      ['invalid', 0],
      ['duplicate_id', 1],
    ]);
  });
});

describe('anomalies', () => {
  it('are counted, with the indexes of the first 10', async () => {
    const items = Array.from({ length: 50 }, (_, index) => ({ id: `p${index}` }));
    expect((await readBeside(...items)).anomalies).toMatchObject([
      { reason: 'invalid', count: 50, indexes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
    ]);
  });
});

describe('the texts of an item', () => {
  it('are cut by code points: names and timestamps at 1,024, labels at 512, raw statuses at 256', async () => {
    const long = '😀'.repeat(2000);
    const labels = { experiment: long, dataset: long, metric: long };
    const texts = { status: long, name: long, timestamp: long, ...labels };
    const listing = await read([{ id: 'p1', ...texts }]);
    expect(listing.records.get('p1')).toMatchObject({
      statusRaw: '😀'.repeat(256),
      name: '😀'.repeat(1024),
      timestamp: '😀'.repeat(1024),
      experiment: '😀'.repeat(512),
      dataset: '😀'.repeat(512),
      metric: '😀'.repeat(512),
    });
  });

  it('are redacted before they are cut', async () => {
    const listing = await read([
      { id: 'p1', status: 'S'.repeat(250) + KEY, name: 'n'.repeat(1020) + KEY, timestamp: KEY },
    ]);
    expect(listing.records.get('p1')).toMatchObject({
      statusRaw: `${'S'.repeat(250)}[redac`,
      name: `${'n'.repeat(1020)}[red`,
      timestamp: '[redacted]',
    });
  });

  it('are labels, each like the first item with it', async () => {
    const fields = { status: 'PENDING', experiment: `e-${KEY}`, dataset: 'a\ud800b', metric: 'm' };
    const many = Array.from({ length: 1500 }, (_, index) => ({ metric: `m-${index}` }));
    const items = [...many, { metric: 'm-0' }].map((own, index) => {
      return { ...fields, ...own, id: `p${index}` };
    });
    const { records } = await read(items);
    expect(
      [...records.values()].map(({ experiment, dataset, metric }) => {
        return { experiment, dataset, metric };
      }),
    ).toEqual(
      items.map(({ metric }) => ({ experiment: 'e-[redacted]', dataset: 'a\ufffdb', metric })),
    );
  });

  it('have lone surrogates and U+0000 replaced by U+FFFD', async () => {
    const listing = await read([{ id: 'p1', status: 'PENDING', name: 'a\ud800b\0' }]);
    expect(listing.records.get('p1')?.name).toBe('a\ufffdb\ufffd');
  });
});

describe('a listing', () => {
  it('may be empty', async () => {
    expect(await read([])).toMatchObject({ complete: true, anomalies: [], records: new Map() });
  });

  it('keeps the order of the response', async () => {
    const ids = ['10', '9', 'b', 'a'];
    expect([...(await read(ids.map((id) => ({ id, status: 'PENDING' })))).records.keys()]).toEqual(
      ids,
    );
  });

  it('without any usable item is an invalid response whose error lists the anomalies', async () => {
    const { reason, details } = await failure([1, { id: 'p1' }, { id: 'p1' }]);
    expect(reason).toBe('invalid_response');
    expect(reasons({ anomalies: details.anomalies ?? [] })).toEqual([
      ['invalid', 0],
      ['invalid', 1],
      ['invalid', 2],
    ]);
  });

  it('may begin with a byte order mark', async () => {
    expect((await read('\uFEFF[{"id": "p1", "status": "PENDING"}]')).records.size).toBe(1);
  });

  it('may be nested 64 deep, and brackets in its texts do not count', async () => {
    const deep = '['.repeat(62) + ']'.repeat(62);
    const name = JSON.stringify(`\\"${'['.repeat(100)}`);
    expect(
      (await read(`[{"id": "p1", "status": "PENDING", "name": ${name}, "x": ${deep}}]`)).records
        .size,
    ).toBe(1);
  });
});

describe('a listing body', () => {
  it.each([
    ['if it is nested 65 deep', '['.repeat(65) + ']'.repeat(65)],
    ['if it is nested a million deep', '['.repeat(1e6)],
    ['if it is nested deep in objects', '[{"a":'.repeat(1e6)],
  ])('is an invalid response %s', async (_, body) => {
    const { reason, details } = await failure(body);
    expect(reason).toBe('invalid_response');
    expect(details.anomalies).toBeUndefined();
  });

  it('is rejected if it is not UTF-8', async () => {
    const body = Buffer.from('[{"id": "p\xe9", "status": "PENDING"}]', 'latin1');
    await expect(readListing(body, 'prompt', scrub)).rejects.toThrow('not UTF-8');
  });

  it('is not quoted in the error when it is invalid', async () => {
    expect((await failure(`[${KEY}`)).message).not.toContain('secret');
  });
});

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readErrorInfo } from '../../../src/evaluation-api/error-info.ts';
import {
  type Keep,
  SCALAR,
  parsePartially,
} from '../../../src/evaluation-api/listing/parse-partially.ts';
import { readListing } from '../../support/read-listing.ts';
import { takeAtOnce } from '../../support/at-once.ts';

const same = (text: string) => text;
const fieldsOf = (...names: readonly string[]): Keep => ({
  fields: new Map(names.map((name) => [name, SCALAR])),
});
const LIST: Keep = { items: fieldsOf('a', 'b') };

/** Keeps the named parts of a value that was built as a whole. */
function pick(value: unknown, { fields, items }: Keep): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return items ? value.map((item) => pick(item, items)) : [];
  const kept: Record<string, unknown> = {};
  for (const [name, keep] of fields ?? []) {
    if (Object.hasOwn(value, name)) kept[name] = pick(Reflect.get(value, name), keep);
  }
  return kept;
}

function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return 'no JSON';
  }
}

/** JSON texts, with or without white space, perhaps with one character replaced. */
const texts = fc
  .record({
    value: fc.array(
      fc.oneof(
        fc.dictionary(
          fc.constantFrom('a', 'b', 'c', 'é"', '\ud800'),
          fc.jsonValue({ maxDepth: 3 }),
        ),
        fc.jsonValue({ maxDepth: 3 }),
      ),
    ),
    space: fc.constantFrom(undefined, ' \t', '\n', 3),
    at: fc.nat(),
    change: fc.constantFrom(
      undefined,
      '',
      '"',
      '\\',
      '\\u12',
      ',',
      ']',
      '}',
      '0',
      '-',
      'e',
      '\n',
      '\0',
    ),
  })
  .map(({ value, space, at, change }) => {
    const text = JSON.stringify(value, undefined, space);
    if (change === undefined) return text;
    const place = at % (text.length + 1);
    return text.slice(0, place) + change + text.slice(place + 1);
  });

describe('parsePartially', () => {
  it('accepts the same texts as JSON.parse and keeps only the named fields', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(outcome(() => takeAtOnce(parsePartially(text, LIST)))).toEqual(
          outcome(() => pick(JSON.parse(text) as unknown, LIST)),
        );
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['', '01', '-', '1.', '.5', '1e', '+1', 'tru', 'nullx', 'NaN', 'Infinity'],
    ['"', '"\\', '"\\x"', '"\\u12g4"', '"\t"', "'a'", '\ufeff1', '\u00a01'],
    ['[', '[1', '[1,', '[1,]', '[,1]', '[1 2]', ']', '[1]]'],
    ['{', '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{a:1}', '{"a" 1}', '{,}', '}', '{1:1}'],
  ])('rejects %s, %s, %s and similar texts that are not JSON', (...broken) => {
    for (const text of broken)
      expect(() => takeAtOnce(parsePartially(text, LIST))).toThrow(SyntaxError);
  });

  it.each([
    ['the last of two fields of a name', '[{"a":1,"a":2}]', [{ a: 2 }]],
    ['a name that is written with escapes', '[{"\\u0061":"\\u0062"}]', [{ a: 'b' }]],
    ['containers, empty', '[{"a":{"a":[1]},"b":[{"b":1}]}]', [{ a: {}, b: [] }]],
    ['numbers beyond numbers', '[1e999, 12345678901234567890]', [Infinity, 12345678901234567000]],
  ])('keeps %s', (_, text, kept) => {
    expect(takeAtOnce(parsePartially(text, LIST))).toEqual(kept);
  });
});

it.each([
  ['fields', `{${Array.from({ length: 500_000 }, () => '"":0').join()}}`],
  ['items', `[${'0,'.repeat(1_000_000)}0]`],
  ['a text', `"${'x'.repeat(2_000_000)}"`],
  ['a text of escapes', `"${String.raw`\u0041`.repeat(400_000)}"`],
  ['a name', `{"${'x'.repeat(2_000_000)}":0}`],
])('parsePartially yields after about every 256 Ki characters: %s', (_, text) => {
  const steps = parsePartially(text, LIST);
  let taken = 1;
  while (steps.next().done !== true) taken += 1;
  expect(taken).toBeGreaterThanOrEqual(7);
  expect(taken).toBeLessThan(30);
});

describe('a large body with 40,000 unknown fields', () => {
  const crowd = Array.from({ length: 40_000 }, (_, n) => `"k${n}":[${n},"\\"]}"]`).join();

  it.each([
    [
      'directly in an item',
      `[{"id":"p","x":0,${crowd},"status":"FAILED","name":"n"},{"status":7}]`,
    ],
    [
      'in a nested object of an item',
      `[{"id":"p","x":{${crowd}},"status":"FAILED","name":"n"},{"status":7}]`,
    ],
  ])('is read correctly with these fields %s', async (_, text) => {
    const listing = await readListing(Buffer.from(text), 'prompt', same);
    expect([...listing.records.values()]).toEqual([
      { id: 'p', status: 'FAILED', statusRaw: undefined, name: 'n', timestamp: undefined },
    ]);
    expect(listing.anomalies).toMatchObject([{ reason: 'invalid', indexes: [1] }]);
    await expect(readListing(Buffer.from(text.slice(0, -1)), 'prompt', same)).rejects.toThrow(
      'not JSON',
    );
  });

  it('is read for its error_info', () => {
    const text = `{${crowd},"error_info":{${crowd},"error_id":"E","error_msg":"m"}}`;
    expect(takeAtOnce(readErrorInfo(Buffer.from(text), same))).toEqual({
      errorInfo: { error_id: 'E', error_msg: 'm' },
      errorMsgTruncated: false,
    });
  });
});

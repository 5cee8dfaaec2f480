import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromStored, parseStored, toStored } from '../../../../src/store/postgres/sql/text.ts';

const text = fc.string({ unit: fc.constantFrom('\u0000', '\u0001', '\u0002', 'a', '\u{1F600}') });
const compare = (one: string, other: string) =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));

describe('a text in PostgreSQL', () => {
  it('has no U+0000 and comes back as it was, in the same order among others', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(toStored(one)).not.toContain('\u0000');
        expect(fromStored(toStored(one))).toBe(one);
        expect(compare(toStored(one), toStored(other))).toBe(compare(one, other));
      }),
    );
  });

  it('comes back from JSON, whatever PostgreSQL escapes in it', () => {
    const escape = (one: string) => JSON.stringify(one).replaceAll('\u0001', '\\u0001');
    fc.assert(
      fc.property(text, (one) => {
        expect(parseStored(`[{"a":${escape(toStored(one))}}, 1]`)).toEqual([{ a: one }, 1]);
      }),
    );
  });

  it('that is none in UTF-8 is made one', () => {
    expect(toStored('a\uD800b')).toBe('a\uFFFDb');
  });

  it('may be absent', () => {
    expect(toStored(undefined)).toBeNull();
  });
});

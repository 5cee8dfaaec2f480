import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromStored, parseStored, toStored } from '../../../../src/store/postgres/sql/text.ts';

const text = fc.string({ unit: fc.constantFrom('\u0000', '\u0001', '\u0002', 'a', '\u{1F600}') });
const compare = (one: string, other: string) =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));

describe('a string stored in PostgreSQL', () => {
  it('contains no U+0000, reads back unchanged and keeps its sort order', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(toStored(one)).not.toContain('\u0000');
        expect(fromStored(toStored(one))).toBe(one);
        expect(compare(toStored(one), toStored(other))).toBe(compare(one, other));
      }),
    );
  });

  it('reads back unchanged from JSON in which PostgreSQL escapes control characters', () => {
    const escape = (one: string) => JSON.stringify(one).replaceAll('\u0001', '\\u0001');
    fc.assert(
      fc.property(text, (one) => {
        expect(parseStored(`[{"a":${escape(toStored(one))}}, 1]`)).toEqual([{ a: one }, 1]);
      }),
    );
  });

  it('has a lone surrogate replaced by U+FFFD', () => {
    expect(toStored('a\uD800b')).toBe('a\uFFFDb');
  });

  it('is NULL if it is undefined', () => {
    expect(toStored(undefined)).toBeNull();
  });
});

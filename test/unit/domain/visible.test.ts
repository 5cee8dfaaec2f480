import { describe, expect, it } from 'vitest';
import { visible, visibleJson } from '../../../src/domain/visible.ts';

describe('visible', () => {
  it.each([
    ['an escape sequence', '\u001b[2Jx', '\\u001b[2Jx'],
    ['a C1 control', 'a\u009bb', 'a\\u009bb'],
    ['ends of lines and tabs', 'a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['other line separators', 'a\u2028b\u2029c\u0085d', 'a\\u2028b\\u2029c\\u0085d'],
    ['a bidi override', 'gpj.\u202eexe', 'gpj.\\u202eexe'],
    ['bidi isolates', '\u2066a\u2069', '\\u2066a\\u2069'],
    ['invisible characters', 'a\u200bb\ufeffc', 'a\\u200bb\\ufeffc'],
    ['tags outside the BMP', 'a\u{e0041}', 'a\\udb40\\udc41'],
    ['NUL and DEL', '\u0000\u007f', '\\u0000\\u007f'],
    ['a lone surrogate', 'a\ud800', 'a\\ud800'],
  ])('escapes %s', (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it.each(['Übergröße', '日本語', 'مرحبا', '👩‍💻', 'क्‍ष', 'a "quoted" \\ text'])(
    'leaves %s as it is',
    (text) => {
      expect(visible(text)).toBe(text);
    },
  );

  it('escapes JSON without changing its value', () => {
    const value = { name: '\u009b2J\u202e\u{e0041}\u0000"\\' };
    const text = visibleJson(JSON.stringify(value));
    expect(text).toMatch(/^[ -~]*$/);
    expect(JSON.parse(text)).toEqual(value);
  });

  it('keeps the newline at the end of a line of JSON', () => {
    expect(visibleJson('{"a":"\u2028"}\n')).toBe('{"a":"\\u2028"}\n');
  });
});

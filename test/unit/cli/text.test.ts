import { describe, expect, it } from 'vitest';
import {
  cut,
  timeText,
  visible,
  visibleJson,
  widthOf,
  zonedTimeText,
} from '../../../src/cli/text.ts';

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
  ])('shows %s', (_, text, shown) => {
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
    const text = visibleJson(value);
    expect(text).toMatch(/^[ -~]*$/);
    expect(JSON.parse(text)).toEqual(value);
  });
});

describe('widthOf', () => {
  it.each([
    ['', 0],
    ['plain', 5],
    ['Übergröße', 9],
    ['e\u0301', 1],
    ['日本語', 6],
    ['한국', 4],
    ['ｆｕｌｌ', 8],
    ['🚀', 2],
    ['…', 1],
  ])('of %j is %i', (text, width) => {
    expect(widthOf(text)).toBe(width);
  });
});

describe('cut', () => {
  it.each([
    ['fits', 4, 'fits'],
    ['does not', 4, 'doe…'],
    ['日本語', 6, '日本語'],
    ['日本語', 5, '日本…'],
    ['日本語', 4, '日…'],
    ['🚀🚀', 3, '🚀…'],
    ['x', 1, 'x'],
    ['xy', 1, '…'],
  ])('%j to %i columns is %j', (text, width, kept) => {
    expect(cut(text, width)).toBe(kept);
  });
});

describe('times', () => {
  it('are whole seconds of UTC', () => {
    expect(timeText(Date.UTC(2026, 2, 29, 1, 2, 3, 999))).toBe('2026-03-29T01:02:03Z');
  });

  it.each([
    ['UTC', '2026-03-29T01:00:00+00:00'],
    ['Europe/Berlin', '2026-03-29T03:00:00+02:00'],
    ['America/New_York', '2026-03-28T21:00:00-04:00'],
    ['Asia/Kathmandu', '2026-03-29T06:45:00+05:45'],
    ['Europe/London', '2026-03-29T02:00:00+01:00'],
  ])('of %s carry its offset', (timezone, text) => {
    expect(zonedTimeText(Date.UTC(2026, 2, 29, 1), timezone)).toBe(text);
  });

  it('of midnight are of hour 00', () => {
    expect(zonedTimeText(Date.UTC(2026, 0, 1), 'UTC')).toBe('2026-01-01T00:00:00+00:00');
  });
});

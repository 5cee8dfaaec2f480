import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../../src/domain/duration.ts';
import {
  truncate,
  formatDuration,
  formatTime,
  widthOf,
  formatZonedTime,
} from '../../../src/cli/output/text.ts';

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

describe('truncate', () => {
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
    expect(truncate(text, width)).toBe(kept);
  });
});

describe('a duration', () => {
  it.each([
    [0, '0s', '0s'],
    [500, '500ms', '500ms'],
    [5_400_000, '1h30m', '1h30m'],
    [3_600_001, '1h1ms', '1h'],
    [93_784_005, '1d2h3m4s5ms', '1d2h'],
    [86_460_000, '1d1m', '1d'],
    [1_246_783.4, '20m46s783ms', '20m46s'],
  ])('of %d ms is formatted as %s, or as %s with two units', (ms, whole, short) => {
    expect([formatDuration(ms), formatDuration(ms, 2)]).toEqual([whole, short]);
    expect(parseDuration(whole)).toBe(Math.floor(ms));
  });
});

describe('time formatting', () => {
  it('truncates a time to whole seconds in UTC', () => {
    expect(formatTime(Date.UTC(2026, 2, 29, 1, 2, 3, 999))).toBe('2026-03-29T01:02:03Z');
  });

  it.each([
    ['UTC', '2026-03-29T01:00:00+00:00'],
    ['Europe/Berlin', '2026-03-29T03:00:00+02:00'],
    ['America/New_York', '2026-03-28T21:00:00-04:00'],
    ['Asia/Kathmandu', '2026-03-29T06:45:00+05:45'],
    ['Europe/London', '2026-03-29T02:00:00+01:00'],
  ])('writes a time in %s with its UTC offset', (timezone, text) => {
    expect(formatZonedTime(Date.UTC(2026, 2, 29, 1), timezone)).toBe(text);
  });

  it('writes midnight as hour 00', () => {
    expect(formatZonedTime(Date.UTC(2026, 0, 1), 'UTC')).toBe('2026-01-01T00:00:00+00:00');
  });
});

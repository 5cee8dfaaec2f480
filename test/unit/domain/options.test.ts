import { expect, it } from 'vitest';
import { parseMoment, timeOf } from '../../../src/domain/options.ts';

const NOW = Date.parse('2026-11-29T12:00:00.000Z');

it.each([
  ['90m', '2026-11-29T10:30:00.000Z'],
  ['999999999999d', '1970-01-01T00:00:00.000Z'],
  ['2026-11-28', '2026-11-28T00:00:00.000Z'],
  ['2026-10-31', '2026-10-31T00:00:00.000Z'],
  ['2026-11-28T08:30Z', '2026-11-28T08:30:00.000Z'],
  ['2026-11-28T08:30:01.5+01:00', '2026-11-28T07:30:01.500Z'],
])('%s is a moment', (text, time) => {
  expect(new Date(timeOf(parseMoment(text), NOW) ?? 0).toISOString()).toBe(time);
});

it.each([
  '',
  '24',
  'yesterday',
  '2026-13-01',
  '2026-02-30',
  '2026-11-31',
  '2026-11-28T08:30',
  '2026-11-28 08:30Z',
  '28.11.2026',
  '2026',
])('%j is no moment', (text) => {
  expect(parseMoment(text)).toBeUndefined();
});

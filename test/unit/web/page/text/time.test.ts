import { expect, it } from 'vitest';
import {
  ago,
  duration,
  preciseDuration,
  timeWithAge,
} from '../../../../../src/web/page/text/time.ts';
import { HOUR, MINUTE, NIGHT, SECOND } from '../../../../support/page/world.ts';

it.each([
  [0, 'less than 1 s'],
  [-5 * SECOND, 'less than 1 s'],
  [999, 'less than 1 s'],
  [59_999, '59 s'],
  [MINUTE, '1 min'],
  [MINUTE + 59 * SECOND, '1 min'],
  [HOUR, '1 h'],
  [HOUR + 5 * MINUTE + 9 * SECOND, '1 h 5 min'],
  [HOUR + 9 * SECOND, '1 h'],
  [52 * HOUR + 59 * MINUTE, '2 d 4 h'],
  [90 * 24 * HOUR, '90 d'],
])('duration formats %i ms as %s', (ms, expected) => {
  expect(duration(ms)).toBe(expected);
});

it.each([
  [59 * SECOND, '59 s'],
  [90 * SECOND, '1 min 30 s'],
  [10 * MINUTE - 1, '9 min 59 s'],
  [2 * MINUTE + 999, '2 min'],
  [10 * MINUTE + SECOND, '10 min'],
  [HOUR + 5 * MINUTE, '1 h 5 min'],
])('preciseDuration formats %i ms as %s', (ms, expected) => {
  expect(preciseDuration(ms)).toBe(expected);
});

it.each([
  [NIGHT, 'now'],
  [NIGHT - 4 * MINUTE, '4 min ago'],
  [NIGHT + 5 * SECOND, 'in 5 s'],
])('ago formats the epoch time %i relative to the current time', (ms, expected) => {
  expect(ago(ms, NIGHT)).toBe(expected);
});

it('timeWithAge shows the age and the UTC time, with a machine-readable datetime', async () => {
  const html = String(await timeWithAge(NIGHT - HOUR, NIGHT));

  expect(html).toContain('1 h ago');
  expect(html).toContain(
    '<time datetime="2026-11-21T02:12:40.000Z">2026-11-21 02:12:40 UTC</time>',
  );
});

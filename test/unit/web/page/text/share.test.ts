import { expect, it } from 'vitest';
import { shareText } from '../../../../../src/web/page/text/share.ts';

it.each([
  [1, 1, '100 %'],
  [1, 3, '33 %'],
  [1, 1000, 'less than 1 %'],
  [999, 1000, 'more than 99 %'],
  [99, 100, '99 %'],
])('shareText formats %d of %d as %s', (count, total, text) => {
  expect(shareText(count, total)).toBe(text);
});

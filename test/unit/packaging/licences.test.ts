import { expect, it } from 'vitest';
import { isAllowed } from '../../../scripts/package.ts';

it.each([
  ['MIT', true],
  ['(MIT OR GPL-3.0)', true],
  ['GPL-3.0 OR ISC', true],
  ['', false],
  ['GPL-3.0', false],
  ['MITX', false],
  ['MIT AND GPL-3.0', false],
  ['(MIT OR Apache-2.0) AND GPL-3.0', false],
  ['(MIT OR Apache-2.0) and GPL-3.0', false],
  ['(MIT OR Apache-2.0)AND GPL-3.0', false],
  ['GPL-3.0 AND (MIT OR Apache-2.0)', false],
])('isAllowed evaluates the licence expression "%s"', (license, expected) => {
  expect(isAllowed(license)).toBe(expected);
});

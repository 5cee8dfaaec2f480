import { expect, it } from 'vitest';
import { addressWarnings } from '../../../src/cli/address-warnings.ts';

it.each([
  ['https://evaluation.example.com/v2', true],
  ['https://example.com/evaluation/v2', true],
  ['https://evaluation.example.org', false],
  ['https://example.com/v2/evaluation', false],
  ['https://example.com/env2', false],
])('base_url %s ends in the API version and causes a warning: %s', (baseUrl, isWarned) => {
  expect(addressWarnings(baseUrl)).toHaveLength(isWarned ? 1 : 0);
});

it('the base_url of the examples causes a warning', () => {
  const [warning] = addressWarnings('https://evaluation.example.com');
  expect(warning).toContain('this configuration is an example');
});

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config.ts';
import { anyText } from '../../support/any-text.ts';
import { errorOf, loadText, minimal, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();

const WORDS =
  `service projects base_url api_key_file id schedule __proto__ << : - , [ ] { } " ' # ? | > *a !x
!!set --- ... ~ 1 1e999 .nan 10s`
    .split(/\s+/)
    .concat(': ', '- ', ', ', '? ', '&a ', ' ', '\n', '\n  ', '\t', '%YAML 1.1\n', '---\n');

const words = fc
  .array(fc.oneof(fc.constantFrom(...WORDS), anyText({ maxLength: 3 })), {
    maxLength: 60,
  })
  .map((parts) => parts.join(''));

const damaged = fc.tuple(fc.nat(), fc.nat({ max: 20 }), words).map(([at, length, text]) => {
  const good = minimal({ service: 'timeout: 10s', top: 'log:\n  level: info' });
  const start = at % good.length;
  return good.slice(0, start) + text + good.slice(start + length);
});

it('a file with random content is loaded or rejected with positions inside the file', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(words, damaged), async (text) => {
      const error = await loadText(directory, text).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) return;
      expect(error).toBeInstanceOf(ConfigError);
      if (!(error instanceof ConfigError)) return;
      const lines = text.split('\n').length;
      expect(error.faults.length).toBeGreaterThan(0);
      for (const { line, column, message } of error.faults) {
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(lines);
        expect(column).toBeGreaterThanOrEqual(1);
        expect(message).not.toMatch(/invalid input|undefined|received/i);
      }
    }),
    { numRuns: 200 },
  );
});

it('a file with more than 100 errors is rejected with the first 100 and the number of others', async () => {
  const wrong = Array.from({ length: 250 }, (_, n) => `  - { id: p${n}, dataset: true }\n`);
  const text = minimal() + wrong.join('');
  const { faults } = await errorOf(loadText(directory, text));
  expect(faults).toHaveLength(101);
  expect(faults[0]).toMatchObject({
    line: 6,
    message: 'unknown key "dataset", did you mean "datasets"?',
  });
  expect(faults[100]).toMatchObject({ line: 0, column: 0, message: 'and 150 more errors' });
});

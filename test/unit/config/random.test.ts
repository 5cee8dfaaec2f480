import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config-error.ts';
import { loadText, minimal, temporaryDirectory } from './loading.ts';

const directory = temporaryDirectory();

const WORDS =
  `service projects base_url api_key_file id schedule __proto__ << : - , [ ] { } " ' # ? | > *a !x
!!set --- ... ~ 1 1e999 .nan 10s`
    .split(/\s+/)
    .concat(': ', '- ', ', ', '? ', '&a ', ' ', '\n', '\n  ', '\t', '%YAML 1.1\n', '---\n');

const words = fc
  .array(fc.oneof(fc.constantFrom(...WORDS), fc.string({ unit: 'binary', maxLength: 3 })), {
    maxLength: 60,
  })
  .map((parts) => parts.join(''));

const damaged = fc.tuple(fc.nat(), fc.nat({ max: 20 }), words).map(([at, length, text]) => {
  const good = minimal({ service: 'timeout: 10s', top: 'log:\n  level: info' });
  const start = at % good.length;
  return good.slice(0, start) + text + good.slice(start + length);
});

it('whatever a file holds, it is loaded or its mistakes are told in place', async () => {
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
    { numRuns: 1000 },
  );
});

it.each([
  ['a million brackets', '['.repeat(1_000_000)],
  ['deep indentation', Array.from({ length: 2000 }, (_, n) => `${' '.repeat(n)}a:`).join('\n')],
  ['ten thousand aliases and one', `a: &a 1\nb:\n${'- *a\n'.repeat(10_001)}`],
  ['many keys', Array.from({ length: 50_000 }, (_, n) => `k${n}: 1`).join('\n')],
])('%s end in a plain error', async (_what, text) => {
  await expect(loadText(directory, text)).rejects.toBeInstanceOf(ConfigError);
});

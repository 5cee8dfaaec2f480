import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { openStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { anyText } from '../../support/any-text.ts';
import { commandLine } from '../../support/command-line.ts';
import { minimal, temporaryDirectory } from '../config/loading.ts';

const directory = temporaryDirectory();
const config = join(directory, 'evalwatch.yaml');
/** Commands that only read. Others would run for ever, call a service or write. */
const COMMANDS = ['status', 'transitions', 'failures', 'causes', 'check'];
const OPTIONS = ['--project', '--since', '--limit', '--status', '--cause', '--store'];
const FLAGS = ['--json', '--help', '--version', '-h', '-V', '--jsn', '--project=', '--json=1'];
const VALUES =
  'checkout-bot other FAILED failed 24h 1h30m 10 0 -1 1e9 9007199254740993 99999999d - -- __proto__';

beforeAll(async () => {
  writeFileSync(config, minimal({ top: 'store: { path: evalwatch.db }' }));
  const path = join(directory, 'evalwatch.db');
  const store = await openStore({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['checkout-bot'], Date.now());
  await store.close();
});

const values = fc.oneof(
  fc.constantFrom(...COMMANDS, ...VALUES.split(' '), '', '\u001b[31m', '\0'),
  anyText({ maxLength: 10 }),
);
// A word that no command takes ends most lines before they reach the store.
const words = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...OPTIONS), values) },
  { weight: 2, arbitrary: fc.constantFrom(...FLAGS).map((flag) => [flag]) },
  { weight: 1, arbitrary: values.map((value) => [value]) },
);
const files = fc.constantFrom(config, config, config, 'nowhere', directory, '', '/dev/null', '\0');

it('a command line of random words ends with an exit code and a message, and without a stack trace', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...COMMANDS),
      fc.array(words, { maxLength: 3 }),
      files,
      async (command, rest, file) => {
        const { code, stdout, stderr } = await commandLine([
          command,
          ...rest.flat(),
          '--config',
          file,
        ]);
        expect(code).toBeOneOf([0, 1, 2]);
        expect(code === 0 ? 'a message' : stderr + stdout).not.toBe('');
        expect(stdout + stderr).not.toMatch(/unexpected, please report|^\s+at |node:internal/m);
        // A terminal would obey it.
        expect(stderr).not.toContain('\u001b');
      },
    ),
    { numRuns: 300 },
  );
});

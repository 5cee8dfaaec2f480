import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import * as fc from 'fast-check';
import type * as CliRoom from '../../src/cli/cli.ts';
import type * as ClockRoom from '../../src/app/clock.ts';
import type * as StoreRoom from '../../src/store/sqlite/sqlite-store.ts';
import { anyText } from '../../test/support/any-text.ts';
import type { Surface } from './surface.ts';

const COMMANDS = [
  'status',
  'transitions',
  'failures',
  'causes',
  'check',
  'poll',
  'run',
  'simulate',
  'demo',
];
const READING = new Set(['status', 'transitions', 'failures', 'causes', 'check']);

/** Returns a surface of every command, with an existing store and with unusable files. */
export async function commandLines(source: string, directory: string): Promise<readonly Surface[]> {
  const { main } = (await import(join(source, 'cli/cli.ts'))) as typeof CliRoom;
  const config = join(directory, 'good.yaml');
  await prepare(source, directory, config);

  const files = fc.constantFrom('nowhere.yaml', directory, '', '/dev/null', '\0', 'ÿ'.repeat(300));
  const values = fc.oneof(
    fc.constantFrom('alpha', 'beta', 'FAILED', 'failed', '24h', '1h30m', '10', '0', '-1', '1e9'),
    fc.constantFrom(
      '9007199254740993',
      '99999999d',
      '',
      '-',
      '--',
      '__proto__',
      '\u001b[31m',
      '\0',
    ),
    anyText({ maxLength: 10 }),
  );
  const options = fc.oneof(
    fc.constantFrom('--project', '--since', '--limit', '--status', '--port', '--config'),
    fc.constantFrom('--json', '--help', '--version', '-h', '-V', '--jsn', '--project=', '--json=1'),
  );
  const words = fc.array(fc.oneof(values, options, fc.constantFrom(...COMMANDS)), { maxLength: 6 });
  const lines = fc
    .tuple(fc.constantFrom(...COMMANDS), words, fc.oneof(fc.constant(config), files))
    .map(([command, rest, file]) => {
      // A command that would run for ever or call a service gets a missing file or an unknown option.
      if (command === 'simulate' || command === 'demo') return [command, ...rest, '--forever'];
      const readable = READING.has(command) ? file : 'nowhere.yaml';
      return [command, ...rest, '--config', readable];
    });
  const loose = words.filter(
    (line) => !line.some((word) => ['run', 'poll', 'simulate', 'demo'].includes(word)),
  );

  async function check(argv: readonly string[]): Promise<void> {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const printed = [text(stdout), text(stderr)] as const;
    const code = await main(argv, { stdout, stderr }, { onSignal: undefined });
    stdout.end();
    stderr.end();
    const [out, told] = await Promise.all(printed);
    if (![0, 1, 2].includes(code)) throw new Error(`exit code ${code}`);
    if (/unexpected, please report|\n\s+at |node:internal/.test(out + told)) {
      throw new Error(`it said: ${told}`);
    }
    if (code !== 0 && told === '' && !out.startsWith('{"errors"')) {
      throw new Error(`exit code ${code} without a word`);
    }
    // oxlint-disable-next-line no-control-regex -- a terminal would obey it
    if (/\u001B/.test(told)) throw new Error('a control character reaches the terminal');
  }

  return [
    { name: 'command lines', property: fc.asyncProperty(fc.oneof(lines, lines, loose), check) },
  ];
}

async function prepare(source: string, directory: string, config: string): Promise<void> {
  const { openStore } = (await import(
    join(source, 'store/sqlite/sqlite-store.ts')
  )) as typeof StoreRoom;
  const { systemClock } = (await import(join(source, 'app/clock.ts'))) as typeof ClockRoom;
  writeFileSync(
    config,
    JSON.stringify({
      service: { base_url: 'https://evaluation.example.com', api_key_file: 'key' },
      projects: [{ id: 'alpha' }, { id: 'beta' }],
      store: { path: 'evalwatch.db' },
    }),
  );
  const path = join(directory, 'evalwatch.db');
  const store = await openStore({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['alpha', 'beta'], Date.now());
  await store.close();
}

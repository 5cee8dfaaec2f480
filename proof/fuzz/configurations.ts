import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import type * as LoadRoom from '../../src/config/load.ts';
import type * as CalendarRoom from '../../src/schedule/calendar.ts';
import { anyText } from '../../test/support/any-text.ts';
import type { Surface } from './surface.ts';

const GOOD = `service:
  base_url: https://evaluation.example.com
  api_key_file: key
  timeout: 10s
  max_requests_per_second: 0.5
schedule: "*/30 * * * * *"
timezone: Europe/Berlin
projects:
  - id: checkout-bot
    datasets: true
  - {id: other, api_key_env: KEY}
store: {path: data/evalwatch.db, retention: 1h30m}
log:
  level: info
`;

const scraps = fc.oneof(
  fc.constantFrom(
    ...`service projects base_url api_key_file id schedule timezone datasets true __proto__ constructor << ! & * ? | > ' " { } [ ]
      , --- ... ~ .nan .inf 0x10 1e999 99999999999999999999 10s 1h30m 64MiB ../../etc/passwd Etc/Nowhere`.split(
      /\s+/,
    ),
    ': ',
    '- ',
    '\n',
    '\n  ',
    '\n    ',
    '\t',
    '#',
    '&a ',
    '*a',
    '%YAML 1.1\n',
    '\uFEFF',
    '\u2028',
    ' ',
  ),
  anyText({ maxLength: 4 }),
);
const texts = fc.array(scraps, { maxLength: 40 }).map((parts) => parts.join(''));
const damaged = fc.tuple(fc.nat(), fc.nat({ max: 30 }), texts).map(([at, length, text]) => {
  const start = at % GOOD.length;
  return GOOD.slice(0, start) + text + GOOD.slice(start + length);
});
const lines = GOOD.split('\n');
const shuffled = fc
  .array(fc.constantFrom(...lines), { maxLength: 20 })
  .map((chosen) => chosen.join('\n'));

/** Returns a surface of any files: each is a configuration, or has located faults. */
export async function configurations(
  source: string,
  directory: string,
): Promise<readonly Surface[]> {
  const { loadConfig } = (await import(join(source, 'config/load.ts'))) as typeof LoadRoom;
  const { validateSchedule } = (await import(
    join(source, 'schedule/calendar.ts')
  )) as typeof CalendarRoom;
  const file = join(directory, 'fuzzed.yaml');

  async function check(text: string): Promise<void> {
    writeFileSync(file, text);
    try {
      const config = await loadConfig({ file, env: {}, validateSchedule, requireSecrets: false });
      if (config.projects.length === 0) throw new Error('no project, and no fault');
      if (new Set(config.projects.map(({ id }) => id)).size < config.projects.length) {
        throw new Error('a project twice, and no fault');
      }
    } catch (error) {
      if (!(error instanceof Error && error.name === 'ConfigError' && 'faults' in error))
        throw error;
      const faults = error.faults as readonly { line: number; column: number }[];
      const last = text.split('\n').length;
      if (faults.length === 0) throw new Error('no fault is told', { cause: error });
      for (const { line, column } of faults) {
        if (!(line >= 1 && line <= last && column >= 1)) {
          throw new Error(`a fault at ${line}:${column} of ${last} lines`, { cause: error });
        }
      }
      if (/\n\s+at /.test(error.message)) throw new Error('a stack trace', { cause: error });
    }
  }

  return [
    {
      name: 'configuration texts',
      property: fc.asyncProperty(fc.oneof(texts, damaged, damaged, shuffled), check),
    },
  ];
}

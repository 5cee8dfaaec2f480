import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { textWithBug } from '../../../proof/bug.ts';
import { ROWS, rowsThatJudge } from '../../../proof/rows.ts';
import { MISTAKES } from '../../../proof/simulation/mistakes.ts';
import { execute } from '../../support/command-line.ts';

const ROOT = join(import.meta.dirname, '../../..');
const proof = (...args: readonly string[]) =>
  execute(process.execPath, [join(ROOT, 'scripts/proof.ts'), ...args]);

describe('npm run proof', () => {
  it('lists its rows, options and commands with --help', async () => {
    const { code, stdout } = await proof('--help');
    expect(code).toBe(0);
    for (const { name } of ROWS) expect(stdout).toContain(`"${name}"`);
    expect(stdout).toMatch(/--short .*--changed <commit> .* causes .* limits /s);
  });

  it.each([
    [['nothing'], "'nothing' is invalid for argument 'row'"],
    [['--days', '1'], '--part and --days work only with the row simulation'],
    [['causes', '--out', 'x'], "required option '--messages <file>' not specified"],
  ])('exits 2 with an explanation: %j', async (args, message) => {
    const { code, stderr } = await proof(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('the rows that judge a file', () => {
  it('are those that name its folder, or have it', () => {
    const namesFor = (file: string) => rowsThatJudge([file]).map(({ name }) => name);
    expect(namesFor('proof/web/any.ts')).toEqual(['web']);
    expect(namesFor('src/web/server.ts')).toContain('web');
    expect(namesFor('README.md')).toEqual([]);
  });

  it.each(ROWS)('of $name exist', ({ judges }) => {
    for (const path of judges) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
  });
});

it.each([...ROWS.flatMap(({ bug = [] }) => bug), ...Object.values(MISTAKES).flat()])(
  'the source has the text that this mistake changes: $what',
  async ({ file, replace }) => {
    expect(await textWithBug(join(ROOT, 'src', file), replace)).toBeTypeOf('string');
  },
);

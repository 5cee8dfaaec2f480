import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { debianTool, IN_CI } from '../../support/debian-tool.ts';
import { commandLine, execute } from '../../support/command-line.ts';
import { temporaryDirectory } from './configuration-file.ts';

const docs = readFileSync(new URL('../../../docs/commands.md', import.meta.url), 'utf8');

async function scriptOf(shell: string): Promise<string> {
  const { code, stdout, stderr } = await commandLine(['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const file = join(temporaryDirectory(), `evalwatch.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

/** Completions of a line, by shell. */
const offers: Readonly<Record<string, (line: string) => Promise<readonly string[]>>> = {
  bash: async (line) => {
    const words = line.split(' ');
    const program = `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _evalwatch; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = await execute('bash', [
      '-c',
      program,
      await scriptOf('bash'),
      ...words,
    ]);
    expect(stderr).toBe('');
    return stdout.trimEnd().split('\n');
  },
  fish: async (line) => {
    const fish = debianTool('fish', 'fish') ?? '';
    const { stdout, stderr } = await execute(fish, [
      '--no-config',
      '-c',
      'source $argv[1]; complete -C $argv[2]',
      await scriptOf('fish'),
      line,
    ]);
    expect(stderr).toBe('');
    return stdout
      .trimEnd()
      .split('\n')
      .map((each) => each.split('\t')[0] ?? '');
  },
};

const hasFish = debianTool('fish', 'fish') !== undefined;
if (!hasFish) console.warn('no fish here: its completion was not tried');
/** In CI a missing fish fails its tests. */
const shells = hasFish || IN_CI ? ['bash', 'fish'] : ['bash'];

describe.each(shells)('%s', (shell) => {
  const offered = (line: string) => offers[shell]?.(line);

  it.each([
    ['evalwatch tr', ['transitions']],
    ['evalwatch transitions --fo', ['--follow']],
    ['evalwatch status --status FA', ['FAILED']],
    ['evalwatch ca', ['causes']],
    ['evalwatch failures --ca', ['--cause']],
    ['evalwatch failures --format c', ['csv']],
    ['evalwatch export --format c', ['csv']],
    ['evalwatch store c', ['check']],
    ['evalwatch store check --j', ['--json']],
    ['evalwatch completion z', ['zsh']],
  ])('completes %s', async (line, words) => {
    expect(await offered(line)).toEqual(words);
  });

  it('completes file names for --config and for the argument of backup', async () => {
    expect(await offered('evalwatch run --config packag')).toContain('package.json');
    expect(await offered('evalwatch backup packag')).toContain('package.json');
  });
});

it('the zsh script loads bashcompinit and contains the bash script', async () => {
  const [bash, zsh] = await Promise.all(
    ['bash', 'zsh'].map((shell) => commandLine(['completion', shell])),
  );
  expect(zsh?.stdout).toMatch(
    /^#compdef evalwatch\nautoload -U \+X bashcompinit && bashcompinit\n/,
  );
  expect(zsh?.stdout).toContain(bash?.stdout);
});

it('completion for an unsupported shell exits 2', async () => {
  expect(await commandLine(['completion', 'csh'])).toMatchObject({ code: 2, stdout: '' });
});

it('docs/commands.md contains every option of the fish completion', async () => {
  const { stdout } = await commandLine(['completion', 'fish']);
  const flags = new Set([...stdout.matchAll(/ -l ([a-z-]+)/g)].map(([, name]) => `--${name}`));
  expect(flags.size).toBeGreaterThan(15);
  expect([...flags].filter((flag) => !docs.includes(flag))).toEqual([]);
});

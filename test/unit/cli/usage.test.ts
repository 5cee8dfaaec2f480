import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { commandLine, evalwatch } from '../../support/command-line.ts';

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
);

describe('help', () => {
  it('lists the commands on stdout', async () => {
    const { code, stdout, stderr } = await commandLine(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const listed = Array.from(stdout.matchAll(/^ {2}([a-z-]+) /gm), ([, command]) => command);
    expect(listed.slice(0, 3)).toEqual(['init', 'run', 'check']);
    expect(listed.at(-1)).toBe('help');
  });

  it('is printed on stderr with exit code 2 if no command is given', async () => {
    const { code, stdout, stderr } = await commandLine([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: evalwatch');
  });

  it.each([
    [['help', 'status'], 'status'],
    [['help', 'store'], 'store'],
    [['help', 'store', 'check'], 'store check'],
    [['store', 'help', 'check'], 'store check'],
  ])('is the same with %j as with --help', async (words, command) => {
    const asked = await commandLine([...command.split(' '), '--help']);
    expect(asked.stdout).toMatch(new RegExp(`^Usage: evalwatch ${command} `));
    expect(await commandLine(words)).toEqual(asked);
  });

  it.each([
    [['help', 'nope'], "unknown command 'nope'"],
    [['help', 'statsu'], "unknown command 'statsu'\n(Did you mean status?)"],
    [['help', 'store', 'chekc'], "unknown command 'chekc'\n(Did you mean check?)"],
  ])('is refused with exit code 2 for an unknown command: %j', async (words, message) => {
    const stderr = `error: ${message}\n`;
    expect(await commandLine(words)).toMatchObject({ code: 2, stdout: '', stderr });
  });
});

it.each([[['--version']], [['status', '--version']]])('%j prints the version', async (args) => {
  const { code, stdout, stderr } = await commandLine(args);
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: `${manifest.version}\n`,
    stderr: '',
  });
});

describe('bad usage', () => {
  it('ends the process with exit code 2', async () => {
    const { code, stdout, stderr } = await evalwatch(['nonsense']);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: "error: unknown command 'nonsense'\n",
    });
  });

  it.each([
    [['statsu'], /unknown command 'statsu'[^]*Did you mean status\?/],
    [['status', '--projct', 'x'], /unknown option '--projct'[^]*Did you mean --project\?/],
    [['status', 'extra'], /too many arguments/],
    [['status', '--project'], /option '--project <id>' argument missing/],
    [
      ['status', '--status', 'DONE'],
      /'DONE' is invalid.*PENDING, RUNNING, COMPLETED, FAILED, UNKNOWN/,
    ],
    [['status', '--status', 'NONE'], /'NONE' is invalid/],
    [['transitions', '--status', 'FAILED'], /unknown option '--status'/],
    [
      ['failures', '--since', '24'],
      /'24' is invalid.*must be a duration such as 24h, or a time such as 2026-11-29/,
    ],
    [['failures', '--cause', 'other'], /'other' is invalid.*16 hexadecimal digits/],
    [
      ['failures', '--json', '--format', 'csv'],
      /'--format <format>' cannot be used with option '--json'/,
    ],
    [['failures', '--format', 'json'], /'json' is invalid.*csv/],
    [['export', '--format', 'xml'], /'xml' is invalid/],
    [
      ['causes', '--since', '24'],
      /'24' is invalid.*must be a duration such as 24h, or a time such as 2026-11-29/,
    ],
    [['causes', '--limit', '0'], /'0' is invalid/],
    [['failures', '--since', 'yesterday'], /'yesterday' is invalid.*2026-11-29T08:30Z/],
    [['failures', '--since', `${'9'.repeat(400)}d`], /is invalid/],
    [['status', '--limit', '0'], /'0' is invalid.*whole number, 1 or more/],
    [['status', '--limit', '-1'], /'-1' is invalid/],
    [['status', '--limit', '1.5'], /'1.5' is invalid/],
    [['status', '--limit', '0x10'], /'0x10' is invalid/],
    [['status', '--limit', '99999999999999999999'], /is invalid/],
    [['simulate', '--tick', '30d'], /'30d' is invalid.*from 1ms to 24d/],
    [['simulate', '--tick', '0s'], /'0s' is invalid.*from 1ms to 24d/],
    [['completion', 'bash'], /evalwatch has no completion any more: `evalwatch --help` lists/],
    [['help', 'completion'], /evalwatch has no completion any more/],
    [['status', '--watch=5s'], /status has no --watch any more: run `watch evalwatch status`/],
    [['export', '--output', 'x'], /export has no --output any more: redirect stdout/],
    [['export', '--force'], /export has no --force any more: redirect stdout/],
    [
      ['simulate', '--faults', 'hang'],
      /simulate has no --faults any more: .*stop it, or put a proxy/,
    ],
    [['simulate', '--projects', 'a,b, a'], /Project "a" is named twice\./],
    [['simulate', '--projects', 'a,,b'], /A project id must not be empty\./],
  ])('exits 2 with an explanation: %j', async (args, message) => {
    const { code, stdout, stderr } = await commandLine(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it.each([
    [['check'], { npm_config_connect: 'true' }, '--connect', 'check --connect'],
    [
      ['run', 'etc/evalwatch.yaml'],
      { npm_config_config: 'true', npm_config_watch_config: 'true' },
      '--config and --watch-config',
      'run --config <file> --watch-config',
    ],
    [['store', 'check'], { npm_config_json: 'true' }, '--json', 'store check --json'],
  ])('is reported if npm has taken an option: %j', async (args, taken, options, instead) => {
    const npm = { npm_package_json: resolve('package.json'), npm_lifecycle_event: 'evalwatch' };
    for (const [name, value] of Object.entries({ ...npm, ...taken })) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await commandLine(args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `error: npm has taken ${options} for itself, because -- is missing before the command: npm run --silent evalwatch -- ${instead}\n`,
    });
    vi.stubEnv('npm_lifecycle_event', 'npx');
    const { stderr } = await commandLine(args);
    expect(stderr).toContain(`before the command: npm exec -- evalwatch ${instead}\n`);
    // Something else than this command line has set the variable, such as .npmrc.
    expect(await commandLine([...args, '--help'])).toMatchObject({ code: 0, stderr: '' });
    // A script that calls evalwatch may have such options of its own.
    vi.stubEnv('npm_lifecycle_event', 'test');
    const { stderr: withoutNpm } = await commandLine(args);
    expect(withoutNpm).not.toContain('npm');
  });

  it('is reported with its control characters escaped', async () => {
    const { stderr } = await commandLine(['\u001b[2J\u202e']);
    expect(stderr).toContain("'\\u001b[2J\\u202e'");
  });
});

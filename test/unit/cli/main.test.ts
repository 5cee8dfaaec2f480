import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { execute } from '../../support/command-line.ts';
import { SOURCE_ENTRY } from '../../support/entry.ts';

const preload = (code: string) => ['--import', `data:text/javascript,${encodeURIComponent(code)}`];

/** Runs a command from the sources, with these arguments of Node. */
function run(nodeArguments: readonly string[], command: string) {
  return execute(process.execPath, [...nodeArguments, SOURCE_ENTRY, command]);
}

describe('evalwatch on a Node version below 24', () => {
  const oneLine =
    /^evalwatch needs Node 24 or newer, but this is Node \d+\.\d+\.\d+: [^\n]*npm ci[^\n]*\n$/;
  const older = preload(
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.1.0' } })`,
  );

  it.each([['--help'], ['run']])('prints one line and exits 2 for %s', async (command) => {
    const { code, stdout, stderr } = await run(older, command);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(oneLine);
  });

  const systemNode = '/usr/bin/node';
  const systemVersion = existsSync(systemNode)
    ? Number.parseInt(execFileSync(systemNode, ['-p', 'process.versions.node']).toString(), 10)
    : 0;
  // Where there is none, no test is skipped, because CI accepts no skipped test.
  it.each(systemVersion >= 16 && systemVersion < 24 ? [systemNode] : [])(
    'prints one line and exits 2 on the older Node of the system, %s',
    async (program) => {
      const { code, stdout, stderr } = await execute(program, [SOURCE_ENTRY, 'status']);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(oneLine);
    },
  );
});

it('an installation from the sources exits 2 and names npm run pack', async () => {
  await using place = await temporaryDirectory();
  const installed = join(place.path, 'node_modules/evalwatch/src/main.js');
  await cp(SOURCE_ENTRY, installed);
  const { code, stdout, stderr } = await execute(process.execPath, [installed, 'status']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^evalwatch is installed from its sources, [^\n]*npm run pack[^\n]*\n$/);
});

it('a command that reads the store loads no simulator, no web server and no client of the service', async () => {
  const recorder = preload(`
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    process.on('exit', () => process.stderr.write(loaded.join(' ')));`);
  await using place = await temporaryDirectory();
  const store = join(place.path, 'evalwatch.db');
  await (await openStoreInProcess({ path: store, clock: systemClock, emit: () => {} })).close();
  const args = [SOURCE_ENTRY, 'failures', '--store', store];
  const { code, stderr } = await execute(process.execPath, [...recorder, ...args]);
  expect(code).toBe(0);
  const folders = Array.from(stderr.matchAll(/\/src\/([\w-]+)\//g), ([, folder]) => folder);
  expect(folders).toContain('store');
  expect(folders.filter((each) => /simulator|web|client|metrics|log/.test(each ?? ''))).toEqual([]);
});

/** Returns arguments of Node that replace the command line by this code. */
function instead(code: string): readonly string[] {
  return preload(`
    import { registerHooks } from 'node:module';
    const url = ${JSON.stringify(`data:text/javascript,${encodeURIComponent(code)}`)};
    registerHooks({
      resolve: (name, context, next) =>
        name === './cli/main.ts' ? { url, shortCircuit: true } : next(name, context),
    });`);
}

describe('a signal during startup', () => {
  const standIn = (signal: string) =>
    instead(`
      process.kill(process.pid, '${signal}');
      export const main = () => new Promise((resolve) => setTimeout(resolve, 300, 7));`);

  it.each([
    ['run', 'SIGTERM', 0],
    ['run', 'SIGINT', 0],
    ['demo', 'SIGTERM', 0],
    ['status', 'SIGTERM', 143],
    ['poll', 'SIGINT', 130],
  ])('ends %s if it is %s, with exit code %i', async (command, signal, code) => {
    const finished = await run(standIn(signal), command);
    expect(finished).toEqual({ code, signal: null, stdout: '', stderr: '' });
  });

  it.each(['SIGHUP', 'SIGUSR1', 'SIGUSR2'])('does nothing to run if it is %s', async (signal) => {
    const finished = await run(standIn(signal), 'run');
    expect(finished).toEqual({ code: 7, signal: null, stdout: '', stderr: '' });
  });
});

it('a demo that is stopped while it starts leaves nothing behind', async () => {
  await using place = await temporaryDirectory();
  const child = spawn(process.execPath, [SOURCE_ENTRY, 'demo'], {
    env: { ...process.env, TMPDIR: place.path },
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  await vi.waitFor(() => expect(readdirSync(place.path)).not.toEqual([]), { timeout: 20_000 });
  child.kill('SIGINT');
  expect(await exit).toEqual([0, null]);
  expect(readdirSync(place.path)).toEqual([]);
});

describe('a command that handles signals', () => {
  // Prints each signal and never ends.
  const standIn = instead(`
    export function main(argv, io, signals) {
      signals.onSignal = (signal) => io.stdout.write(signal + '\\n');
      io.stdout.write('ready\\n');
      if (argv[0] === 'echo') for (let i = 0; i < 2; i += 1) process.kill(process.pid, 'SIGINT');
      return new Promise(() => setInterval(() => {}, 1000));
    }`);

  function start(command: string) {
    const child = spawn(process.execPath, [...standIn, SOURCE_ENTRY, command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return { child, nextLine: async () => (await lines.next()).value as unknown };
  }

  async function endOf(child: ChildProcess) {
    const [code]: unknown[] = await once(child, 'exit');
    return code;
  }

  it.each([
    ['SIGTERM', 'SIGINT', 130],
    ['SIGINT', 'SIGTERM', 143],
  ] as const)('handles a first %s and ends at once upon %s', async (first, second, code) => {
    const { child, nextLine } = start('run');
    expect(await nextLine()).toBe('ready');
    child.kill(first);
    expect(await nextLine()).toBe(first);
    child.kill(second);
    expect(await endOf(child)).toBe(code);
  });

  it('treats two SIGINTs in quick succession as one, because npm sends two for Ctrl+C', async () => {
    const { child, nextLine } = start('echo');
    expect(await nextLine()).toBe('ready');
    expect(await nextLine()).toBe('SIGINT');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(child.exitCode).toBeNull();
    child.kill('SIGINT');
    expect(await endOf(child)).toBe(130);
  });

  it('receives every SIGHUP', async () => {
    const { child, nextLine } = start('run');
    expect(await nextLine()).toBe('ready');
    for (let time = 0; time < 2; time += 1) {
      child.kill('SIGHUP');
      expect(await nextLine()).toBe('SIGHUP');
    }
  });
});

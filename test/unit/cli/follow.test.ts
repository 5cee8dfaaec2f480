import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import { see } from '../store/sqlite/history.ts';
import { commandLine } from '../../support/command-line.ts';
import { ENTRY } from '../../support/entry.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';
import { settle } from '../../support/failures.ts';
import { pollItems } from '../../support/experiments.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';

const PATIENCE = { timeout: 100_000, interval: 50 };

let directory: string;
let config: string;
let store: Store;

beforeEach(async () => {
  directory = temporaryDirectory();
  config = writeConfiguration(directory, [{ id: 'p' }, { id: 'q' }]);
  const path = join(directory, 'evalwatch.db');
  store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['p', 'q'], 1);
  await see(store, 'p', { a: 'PENDING' }, 10);
  await see(store, 'q', { a: 'PENDING' }, 10);
  for (const [at, status] of ['RUNNING', 'FAILED', 'PENDING'].entries()) {
    await see(store, 'p', { a: status }, 20 + at);
  }
  return () => store.close();
});

function start(...args: string[]) {
  const child = spawn(process.execPath, [ENTRY, ...args, '--config', config], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const errors: string[] = [];
  createInterface(child.stderr).on('line', (line) => errors.push(line));
  return { child, lines, errors, ended: once(child, 'close') };
}

const idOf = (line: string) =>
  (JSON.parse(line) as { readonly transition_id: number }).transition_id;

describe('transitions --follow', () => {
  it('prints the newest transitions in order, then each new one of the project once', async () => {
    const { child, lines, errors, ended } = start(
      'transitions',
      '--follow',
      '--json',
      '--limit',
      '2',
      '--project',
      'p',
    );
    await vi.waitFor(() => expect(lines.map(idOf)).toEqual([2, 3]), PATIENCE);
    await see(store, 'p', { a: 'RUNNING' }, 30);
    await see(store, 'q', { a: 'RUNNING' }, 30);
    await see(store, 'p', { a: 'COMPLETED' }, 31);
    await vi.waitFor(() => expect(lines.map(idOf)).toEqual([2, 3, 4, 6]), PATIENCE);
    await see(store, 'p', { a: 'PENDING' }, 32);
    await vi.waitFor(() => expect(lines.map(idOf)).toEqual([2, 3, 4, 6, 7]), PATIENCE);
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
    expect(errors).toEqual([]);
  });

  it('prints only the transitions of prompts in the experiment, or in none', async () => {
    const follow = (experiment: string) =>
      start('transitions', '--follow', '--json', '--experiment', experiment).lines;
    await pollItems(store, 'q', { a: ['RUNNING', 'e'], b: ['RUNNING'] }, 30);
    const [inE, inNone] = [follow('e'), follow('')];
    await vi.waitFor(() => expect([...inE, ...inNone].map(idOf)).toEqual([4, 5]), PATIENCE);
    await see(store, 'q', { d: 'RUNNING' }, 31, 'dataset');
    await pollItems(store, 'q', { a: ['FAILED', 'e'], b: ['FAILED'] }, 32);
    await vi.waitFor(() => expect([inE.length, inNone.length]).toEqual([2, 2]), PATIENCE);
    expect([inE.map(idOf), inNone.map(idOf)]).toEqual([
      [4, 6],
      [5, 7],
    ]);
  });

  it('exits 1 with an error if the store file is moved away', async () => {
    const { lines, errors, ended } = start('transitions', '--follow');
    await vi.waitFor(() => expect(lines).toHaveLength(4), PATIENCE);
    renameSync(join(directory, 'evalwatch.db'), join(directory, 'moved.db'));
    expect(await ended).toEqual([1, null]);
    expect(errors.join()).toMatch(
      /^error: the store is not what was opened: .*evalwatch\.db is no longer there; move it back/,
    );
  });
});

describe('failures --follow', () => {
  it('prints the newest failures of the prompt, then each once when it is settled', async () => {
    const explain = (id: number) => settle(store, id, { reason: 'not_found' }, 40);
    await explain(2);
    await see(store, 'p', { a: 'FAILED', b: 'FAILED' }, 30);
    const args = ['failures', '--follow', '--json', '--project', 'p', '--prompt', 'a'];
    const { lines } = start(...args);
    await vi.waitFor(() => expect(lines.map(idOf)).toEqual([2]), PATIENCE);
    const [a = 0, b = 0] = (await store.pendingFailures({ limitPerProject: 9 })).map(
      ({ transitionId }) => transitionId,
    );
    await explain(b);
    await explain(a);
    await see(store, 'p', { a: 'RUNNING', b: 'RUNNING' }, 31);
    await vi.waitFor(() => expect(lines.map(idOf)).toEqual([2, a]), PATIENCE);
  });
});

describe('colour', () => {
  it.each([
    [{ TERM: 'xterm', NO_COLOR: undefined }, true],
    [{ TERM: 'xterm', NO_COLOR: '' }, true],
    [{ TERM: 'xterm', NO_COLOR: '1' }, false],
    [{ TERM: 'dumb', NO_COLOR: undefined }, false],
  ])('depends on TERM and NO_COLOR on a terminal: %o', async ({ TERM, NO_COLOR }, colored) => {
    vi.stubEnv('TERM', TERM);
    vi.stubEnv('NO_COLOR', NO_COLOR);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { stdout } = await commandLine(['transitions', '--config', config], 80);
    expect(stdout).toContain('FAILED');
    expect(stdout.includes('\u001b[31mFAILED\u001b[39m')).toBe(colored);
  });

  it('is not printed if stdout is not a terminal', async () => {
    const { stdout } = await commandLine(['transitions', '--config', config]);
    expect(stdout).toContain('FAILED');
    expect(stdout).not.toContain('\u001b');
  });
});

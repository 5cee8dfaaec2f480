import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { see } from '../store/sqlite/history.ts';
import { commandLine, execute } from '../../support/command-line.ts';
import { ENTRY } from '../../support/entry.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';
import { openStoreInProcess } from '../../support/store-in-process.ts';

/** More rows than are read at a time. */
const MANY = 6000;
const NOW = Date.now();
const HOUR = 60 * 60 * 1000;

let directory: string;
let config: string;

// One store for all tests, which only read it.
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'evalwatch-'));
  config = writeConfiguration(directory, [{ id: 'p' }, { id: '=q' }]);
  const path = join(directory, 'evalwatch.db');
  const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['p', '=q'], 1);
  const all = (status: string) =>
    Object.fromEntries(Array.from({ length: MANY }, (_, index) => [`x${index}`, status]));
  await see(store, 'p', all('RUNNING'), NOW - 3 * HOUR);
  await see(store, 'p', all('COMPLETED'), NOW - 2 * HOUR);
  await see(store, '=q', { 'a,"b"': 'PENDING' }, NOW - 2 * HOUR);
  await see(store, '=q', { 'a,"b"': 'FAILED' }, NOW - HOUR);
  await store.close();
  return () => rmSync(directory, { recursive: true });
});

const run = (...args: string[]) => commandLine(['export', ...args, '--config', config]);

describe('export', () => {
  it('writes every transition once, oldest first, with the rows of transitions --json', async () => {
    const { code, stdout, stderr } = await run();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    const { stdout: table } = await commandLine([
      'transitions',
      '--json',
      '--limit',
      '100000',
      '--config',
      config,
    ]);
    const newestFirst: readonly unknown[] = JSON.parse(table);
    expect(rows).toHaveLength(MANY + 1);
    expect(rows).toEqual(newestFirst.toReversed());
  });

  it('writes CSV with quotes doubled and formulas escaped', async () => {
    const { stdout } = await run('--format', 'csv', '--since', '90m');
    expect(stdout).toBe(
      'transition_id,time,project,kind,id,from,to,experiment\r\n' +
        `${MANY + 1},${new Date(NOW - HOUR).toISOString()},'=q,prompt,"a,""b""",PENDING,FAILED,of ${NOW - HOUR}\r\n`,
    );
  });

  it('writes only the transitions of --project and rejects an unknown project', async () => {
    expect((await run('--project', '=q')).stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(await run('--project', 'r')).toMatchObject({ code: 2, stdout: '' });
  });

  it('writes nothing, or only the CSV header, for an empty store', async () => {
    const empty = temporaryDirectory();
    const other = writeConfiguration(empty, [{ id: 'p' }]);
    const path = join(empty, 'evalwatch.db');
    await (await openStoreInProcess({ path, clock: systemClock, emit: () => {} })).close();
    expect(await commandLine(['export', '--config', other])).toMatchObject({
      code: 0,
      stdout: '',
    });
    const csv = await commandLine(['export', '--format', 'csv', '--config', other]);
    expect(csv.stdout).toMatch(/^transition_id.*\r\n$/);
  });

  it('exits 0 if the reader closes the pipe', async () => {
    const { code, stderr, stdout } = await execute('/bin/sh', [
      '-c',
      `{ "$0" "$1" export --config "$2"; echo "code $?" >&2; } | head -1 | wc -l`,
      process.execPath,
      ENTRY,
      config,
    ]);
    expect({ code, stderr, stdout: stdout.trim() }).toEqual({
      code: 0,
      stderr: 'code 0\n',
      stdout: '1',
    });
  });
});

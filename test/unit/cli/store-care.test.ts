import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { writeHistory } from '../store/sqlite/history.ts';
import { commandLine, evalwatch } from '../../support/command-line.ts';
import { temporaryDirectory, writeConfiguration } from './configuration-file.ts';

let directory: string;
let config: string;
beforeEach(async () => {
  directory = temporaryDirectory();
  config = writeConfiguration(directory, [{ id: 'p' }]);
  await writeHistory(join(directory, 'evalwatch.db'));
});

describe('backup', () => {
  it('writes a copy in the working directory and replaces an existing file only with --force', async () => {
    const finished = await evalwatch(['backup', 'copy.db', '--config', config], { cwd: directory });
    expect(finished).toMatchObject({ code: 0, stderr: '' });
    expect(finished.stdout).toMatch(/copy\.db: \d+ bytes\n$/);
    const copy = join(directory, 'copy.db');
    const again = await commandLine(['backup', copy, '--config', config]);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toMatch(/^error: .*copy\.db exists: choose another name.*--force\n$/);
    const forced = ['backup', '--force', copy, '--config', config];
    expect(await commandLine(forced)).toMatchObject({ code: 0, stderr: '' });
  });

  it('restores a copy over the store, unless a daemon uses the store', async () => {
    const [store, copy] = [join(directory, 'evalwatch.db'), join(directory, 'copy.db')];
    await commandLine(['backup', copy, '--config', config]);
    const changed = new Database(store);
    changed.exec('DELETE FROM failure');
    const restore = ['backup', '--store', copy, '--force', store];
    expect(await commandLine(restore)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('-wal would damage the copy: stop the daemon') as string,
    });
    changed.close();

    expect(await commandLine(restore)).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await commandLine(['failures', '--json', '--config', config]);
    expect(JSON.parse(stdout)).not.toEqual([]);
  });

  it('rejects - as the target file', async () => {
    const finished = await commandLine(['backup', '-', '--config', config]);
    expect(finished).toMatchObject({
      code: 2,
      stdout: '',
      stderr:
        'error: a backup cannot be written to stdout: name a file (./- is a file with the name -)\n',
    });
    expect(existsSync('-')).toBe(false);
  });

  it('fails without a store, a target directory or a file argument', async () => {
    const empty = temporaryDirectory();
    const other = writeConfiguration(empty, [{ id: 'p' }]);
    const none = await commandLine(['backup', join(empty, 'copy.db'), '--config', other]);
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toContain('there is no store at');
    expect(existsSync(join(empty, 'copy.db'))).toBe(false);
    const nowhere = ['backup', join(directory, 'none', 'copy.db'), '--config', config];
    const refused = await commandLine(nowhere);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('no such file or directory');
    expect(existsSync(join(directory, 'none'))).toBe(false);
    expect(await commandLine(['backup', '--config', config])).toMatchObject({
      code: 2,
      stderr: "error: missing required argument 'file'\n",
    });
  });
});

describe.each([
  ['backup', 'copy.db'],
  ['store', 'check'],
])('%s %s', (...command) => {
  it('exits 2 and refers to docs/scaling.md for a PostgreSQL store', async () => {
    const other = writeConfiguration(temporaryDirectory(), [{ id: 'p' }], {
      store: { postgres_url_file: 'url' },
    });
    const { code, stderr } = await commandLine([...command, '--config', other]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: this command needs a SQLite store.* see docs\/scaling\.md\n$/);
  });
});

describe('the --store hint after a configuration error', () => {
  it.each([
    [['status']],
    [['transitions']],
    [['failures']],
    [['causes']],
    [['export']],
    [['backup', 'copy.db']],
    [['store', 'check']],
  ])('is printed by the command %j', async (command) => {
    const mistake: object = { jiter: '1s' };
    const bad = writeConfiguration(directory, [{ id: 'p' }], mistake);
    const { code, stdout, stderr } = await commandLine([...command, '--config', bad]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('unknown key "jiter", did you mean "jitter"?\n');
    expect(stderr).toMatch(/name a SQLite store with --store\. .*\n$/);
  });

  it('is omitted if the configuration file does not exist', async () => {
    const missing = join(directory, 'missing.yaml');
    const { stderr } = await commandLine(['status', '--config', missing]);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});

describe('store check', () => {
  it('exits 0 and prints ok for each rule if the store is intact', async () => {
    const finished = await commandLine(['store', 'check', '--config', config]);
    expect(finished).toMatchObject({ code: 0, stderr: '' });
    expect(finished.stdout).toMatch(/^(?:ok {5}\S.*\n)+$/);
    expect(finished.stdout).toContain('ok     each move of a prompt to FAILED has a failure\n');
  });

  it('exits 1 and prints each finding and the fix if the store is damaged', async () => {
    const db = new Database(join(directory, 'evalwatch.db'));
    db.exec("DELETE FROM failure; UPDATE record SET status = 'PENDING' WHERE id = 'a'");
    db.close();
    const { code, stdout, stderr } = await commandLine(['store', 'check', '--config', config]);
    expect(code).toBe(1);
    expect(stdout).toContain('WRONG  each move of a prompt to FAILED has a failure\n');
    expect(stdout).toContain("       prompt 'a' of 'p' is PENDING, transition ");
    expect(stderr).toMatch(/evalwatch\.db is damaged: restore a backup/);

    const json = await commandLine(['store', 'check', '--json', '--config', config]);
    expect(json.code).toBe(1);
    const rows: readonly { rule: string; ok: boolean; findings: string[] }[] = JSON.parse(
      json.stdout,
    );
    expect(rows.filter(({ ok }) => !ok).map(({ findings }) => findings.length)).toEqual([
      1, 2, 2, 2,
    ]);
  });
});

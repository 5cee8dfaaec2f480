import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate, readMigrations, SCHEMA_VERSION } from '../../../src/store/sqlite/sql/migrate.ts';
import { commandLine } from '../../support/command-line.ts';

let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'evalwatch-'));
  for (const version of [3, SCHEMA_VERSION]) await writeStore(version);
});

afterAll(() => rmSync(directory, { recursive: true }));

function storeOf(version: number): string {
  return join(directory, `version-${version}.db`);
}

/** Writes a store of this schema version with a prompt that failed. */
async function writeStore(version: number): Promise<void> {
  const db = new Database(storeOf(version));
  const migrations = await readMigrations();
  migrate(db, migrations.slice(0, 1));
  db.exec(`
    INSERT INTO project (project_key, id, configured_at) VALUES (1, 'p', 0);
    INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL);
    INSERT INTO record (listing_key, id, status, since, missing, gone) VALUES (1, 'x', 'FAILED', 100, 0, 0);
    INSERT INTO transition VALUES (1, 1, 'x', NULL, 50, 'NEW', 'RUNNING'), (2, 1, 'x', NULL, 100, 'RUNNING', 'FAILED');
    INSERT INTO transition_total VALUES (1, 'NEW', 'RUNNING', 1), (1, 'RUNNING', 'FAILED', 1);
    INSERT INTO failure (transition_id, listing_key, settled_at, error_id, error_msg) VALUES (2, 1, 700, 'E', 'took 1 s');`);
  migrate(db, migrations.slice(0, version));
  db.close();
}

it.each([
  [['status'], '"prompt_id":"x","prompt_name":null,"status":"FAILED"'],
  [['transitions'], '"from":"RUNNING","to":"FAILED"'],
  [['failures'], '"error_id":"E","error_msg":"took 1 s"'],
  [['failures', '--project', 'p'], '"cause":"'],
  [['causes', '--since', '36500d'], '"shape":"took <*>","count":1'],
])('--store reads a store with %j and does not change it', async (command, row) => {
  const before = readFileSync(storeOf(SCHEMA_VERSION));
  const found = await commandLine([...command, '--json', '--store', storeOf(SCHEMA_VERSION)]);
  expect(found).toMatchObject({ code: 0, stderr: '' });
  expect(found.stdout).toContain(row);
  expect(readFileSync(storeOf(SCHEMA_VERSION)).equals(before)).toBe(true);
});

it('--store is accepted by export and store check', async () => {
  const exported = await commandLine(['export', '--store', storeOf(SCHEMA_VERSION)]);
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  expect(exported.stdout).toContain('"to":"FAILED"');
  const checked = await commandLine(['store', 'check', '--store', storeOf(SCHEMA_VERSION)]);
  expect(checked).toMatchObject({ code: 0, stderr: '' });
  expect(checked.stdout).toContain('ok     its pages and indexes are intact');
});

describe('a store of an earlier schema version', () => {
  it.each([['status'], ['transitions'], ['failures'], ['causes'], ['export'], ['store', 'check']])(
    'is refused by %s %s, which says what to do, and not changed',
    async (...command) => {
      const before = readFileSync(storeOf(3));
      const { code, stderr } = await commandLine([...command, '--store', storeOf(3)]);
      expect(code).toBe(1);
      expect(stderr).toContain(
        `${storeOf(3)} has schema version 3, this evalwatch reads ${SCHEMA_VERSION}: start its daemon on the store once (of a backup, on a copy)`,
      );
      expect(readFileSync(storeOf(3)).equals(before)).toBe(true);
    },
  );

  it('is backed up without a schema upgrade', async () => {
    const copy = join(directory, 'backup.db');
    const args = ['backup', copy, '--store', storeOf(3)];
    expect(await commandLine(args)).toMatchObject({ code: 0, stderr: '' });
    const db = new Database(copy, { readonly: true });
    expect(db.pragma('user_version', { simple: true })).toBe(3);
    db.close();
  });
});

it('--store rejects --config, a missing file and a file that is not a store', async () => {
  const both = await commandLine(['status', '--store', storeOf(3), '--config', 'a.yaml']);
  expect(both.code).toBe(2);
  expect(both.stderr).toContain(
    "option '--store <file>' cannot be used with option '--config <file>'",
  );
  const missing = await commandLine(['status', '--store', join(directory, 'none.db')]);
  expect(missing.stderr).toContain(`there is no store at ${join(directory, 'none.db')}`);
  const other = join(directory, 'text.db');
  writeFileSync(other, 'hello');
  expect((await commandLine(['failures', '--store', other])).code).toBe(1);
});

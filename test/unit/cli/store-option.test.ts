import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { migrate, readMigrations, SCHEMA_VERSION } from '../../../src/store/sqlite/sql/migrate.ts';
import { commandLine } from '../../support/command-line.ts';

let directory: string;
let temporary: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'evalwatch-'));
  temporary = mkdtempSync(join(tmpdir(), 'evalwatch-'));
  vi.stubEnv('TMPDIR', temporary);
  for (const version of [1, 3, SCHEMA_VERSION]) await writeStore(version);
});

afterAll(() => {
  vi.unstubAllEnvs();
  for (const path of [directory, temporary]) rmSync(path, { recursive: true });
});

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

const note = (version: number) =>
  version === SCHEMA_VERSION
    ? ''
    : `note: the store has schema version ${version}, which is earlier than that of this evalwatch; a copy of it as of now is read\n`;

describe.each([1, 3, SCHEMA_VERSION])(
  'a store of schema version %i, opened with --store',
  (version) => {
    it.each([
      [['status'], '"prompt_id":"x","prompt_name":null,"status":"FAILED"'],
      [['transitions'], '"from":"RUNNING","to":"FAILED"'],
      [['failures'], '"error_id":"E","error_msg":"took 1 s"'],
      [['failures', '--project', 'p'], '"cause":"'],
      [['causes', '--since', '36500d'], '"shape":"took <*>","count":1'],
    ])('is read by %j and not changed', async (command, row) => {
      const before = readFileSync(storeOf(version));
      const found = await commandLine([...command, '--json', '--store', storeOf(version)]);
      expect(found).toMatchObject({ code: 0, stderr: note(version) });
      expect(found.stdout).toContain(row);
      expect(readFileSync(storeOf(version)).equals(before)).toBe(true);
      expect(readdirSync(temporary)).toEqual([]);
    });

    it('is accepted by export and store check', async () => {
      const exported = await commandLine(['export', '--store', storeOf(version)]);
      expect(exported).toMatchObject({ code: 0, stderr: note(version) });
      expect(exported.stdout).toContain('"to":"FAILED"');
      const checked = await commandLine(['store', 'check', '--store', storeOf(version)]);
      expect(checked).toMatchObject({ code: 0, stderr: '' });
      expect(checked.stdout).toContain('ok     its pages and indexes are intact');
    });

    it('is backed up without a schema upgrade', async () => {
      const copy = join(directory, `backup-${version}.db`);
      const args = ['backup', copy, '--store', storeOf(version)];
      expect(await commandLine(args)).toMatchObject({ code: 0, stderr: '' });
      const db = new Database(copy, { readonly: true });
      expect(db.pragma('user_version', { simple: true })).toBe(version);
      db.close();
    });
  },
);

it('--store names TMPDIR and its path if no upgraded copy can be written there', async () => {
  vi.stubEnv('TMPDIR', join(directory, 'nowhere'));
  try {
    const { code, stderr } = await commandLine(['status', '--store', storeOf(1)]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `no upgraded copy of it can be written to ${join(directory, 'nowhere')}: set TMPDIR to a directory with room for it`,
    );
  } finally {
    vi.stubEnv('TMPDIR', temporary);
  }
});

it('--store rejects --config, a missing file and a file that is not a store', async () => {
  const both = await commandLine(['status', '--store', storeOf(1), '--config', 'a.yaml']);
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

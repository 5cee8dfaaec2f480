import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { checkStore } from '../../../../src/store/sqlite/check.ts';
import { openDatabase } from '../../../../src/store/sqlite/database.ts';
import {
  migrate,
  readMigrations,
  SCHEMA_VERSION,
} from '../../../../src/store/sqlite/sql/migrate.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startChild } from './child.ts';

const TRANSITIONS = 60_000;

/** Writes a store of schema version 6, that of evalwatch 0.2.0, with so many transitions of 1,000 prompts. */
async function writeEarlier(path: string): Promise<void> {
  const migrations = await readMigrations();
  const db = new Database(path);
  db.pragma('journal_mode = WAL');
  migrate(db, migrations.slice(0, 6));
  db.exec(`
    INSERT INTO project (id, configured_at) VALUES ('p', 1);
    INSERT INTO listing VALUES (1, 1, 'prompt', 1, 0, NULL);
    WITH RECURSIVE numbered AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM numbered WHERE n + 1 < ${TRANSITIONS})
    INSERT INTO transition (listing_key, record_id, at, from_status, to_status)
      SELECT 1, 'prompt ' || (n % 1000), n, iif(n / 1000 % 2, 'RUNNING', 'PENDING'), iif(n / 1000 % 2, 'PENDING', 'RUNNING')
      FROM numbered;
    INSERT INTO record SELECT 1, record_id, to_status, NULL, NULL, NULL, at, 0, 0 FROM transition
      WHERE transition_id > ${TRANSITIONS} - 1000;
    INSERT INTO transition_total SELECT 1, from_status, to_status, count(*) FROM transition GROUP BY 2, 3;`);
  db.close();
}

function read(path: string, sql: string): unknown {
  const db = new Database(path, { readonly: true });
  try {
    return db.prepare(sql).pluck().get();
  } finally {
    db.close();
  }
}

it('an upgrade that is killed is done by the next start', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  await writeEarlier(path);
  for (const afterMs of [0, 20, 80, 160]) {
    await using child = startChild('open-once.ts', path);
    expect(await child.lines.next()).toEqual({ done: false, value: 'upgrading 6' });
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await child.kill();
    // All of it or nothing.
    const version = read(path, 'PRAGMA user_version');
    const column = version === 6 ? 'listing_key' : 'project_key';
    expect(read(path, `SELECT count(${column}) FROM transition`)).toBe(TRANSITIONS);
    if (version !== 6) break;
  }

  await using child = startChild('open-once.ts', path);
  const lines: string[] = [];
  for await (const line of child.lines) lines.push(line);
  expect(lines.at(-1)).toBe('opened');
  expect(read(path, 'PRAGMA user_version')).toBe(SCHEMA_VERSION);
  expect(read(path, 'SELECT count(*) FROM transition')).toBe(TRANSITIONS);
  expect((await checkStore(path)).flatMap(({ findings }) => findings)).toEqual([]);
}, 60_000);

it('an upgrade does not begin without room for a second copy of the store and its log', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  await writeEarlier(path);
  const opening = openDatabase({ path, file: path }, { freeBytes: () => 3 * 1024 * 1024 });
  await expect(opening).rejects.toMatchObject({
    reason: 'full',
    message: expect.stringMatching(
      /store\.db needs \d+ MiB of free space, and 3 MiB are free: make room/,
    ),
  });
  expect(read(path, 'PRAGMA user_version')).toBe(6);
  // A new store needs none.
  const fresh = join(directory.path, 'new.db');
  const database = await openDatabase({ path: fresh, file: fresh }, { freeBytes: () => 0 });
  database.close();
});

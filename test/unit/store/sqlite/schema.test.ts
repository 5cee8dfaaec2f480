import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { migrate, readMigrations } from '../../../../src/store/sqlite/sql/migrate.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { see, writeHistory } from './history.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'store.db');
});
afterEach(() => directory[Symbol.asyncDispose]());

const open = () => openStoreInProcess({ path, clock: systemClock, emit: () => {} });

function edit(sql: string) {
  const db = new Database(path);
  db.unsafeMode();
  db.exec(sql);
  db.close();
}

const CHANGES: readonly (readonly [what: string, sql: string, finding: string])[] = [
  [
    'a trigger that settles failures nobody was told of',
    `CREATE TRIGGER quiet AFTER INSERT ON failure BEGIN
       UPDATE failure SET settled_at = 1, reason = 'not_found'; END`,
    'trigger "quiet" of "failure" is not evalwatch\'s',
  ],
  ['a view', 'CREATE VIEW v AS SELECT 1', 'view "v" is not evalwatch\'s'],
  [
    'a name with control characters',
    'CREATE TABLE "x\u001b[2J\n" (a)',
    'table "x\\u001b[2J\\n" is not evalwatch\'s',
  ],
  [
    'an index that lets a listing have one failure',
    'DELETE FROM transition WHERE at = 40; CREATE UNIQUE INDEX once ON failure (listing_key)',
    'index "once" of "failure" is not evalwatch\'s',
  ],
  [
    'an index less',
    'DROP INDEX record_aggregate',
    'index "record_aggregate" of "record" is missing',
  ],
  [
    'a view in the place of a table',
    'ALTER TABLE settlement RENAME TO s; CREATE VIEW settlement AS SELECT * FROM s',
    'view "settlement" is not evalwatch\'s',
  ],
  [
    'a column more',
    'ALTER TABLE failure ADD COLUMN x TEXT',
    'table "failure" is not as evalwatch makes it',
  ],
  [
    'a condition that calls a function',
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'gone INTEGER', 'gone INTEGER CHECK (length(randomblob(9)))')
     WHERE name = 'record'`,
    'table "record" is not as evalwatch makes it',
  ],
  [
    'a letter that is another one to SQLite',
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'kind', '\u212aind') WHERE name = 'listing'`,
    'table "listing" is not as evalwatch makes it',
  ],
  [
    'a space that is a letter to SQLite',
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'kind', 'kind\u00a0') WHERE name = 'listing'`,
    'table "listing" is not as evalwatch makes it',
  ],
  [
    'a trigger with a reserved name',
    `PRAGMA writable_schema = ON; INSERT INTO sqlite_schema
     VALUES ('trigger', 'sqlite_x', 'failure', 0, 'CREATE TRIGGER sqlite_x AFTER INSERT ON failure BEGIN SELECT 1; END')`,
    'trigger "sqlite_x" of "failure" is not evalwatch\'s',
  ],
];

describe('a store with a modified schema', () => {
  it.each(CHANGES)('is rejected: %s', async (_what, sql, finding) => {
    await writeHistory(path);
    edit(sql);
    const refusal = {
      name: 'StoreError',
      message: expect.stringMatching(
        /^the schema of .*store\.db was changed: .*, or restore a backup$/,
      ),
    };
    for (const opens of [open, () => openReader({ path })]) {
      const error: unknown = await opens().catch((reason: unknown) => reason);
      expect(error).toMatchObject(refusal);
      expect(String(error)).toContain(finding);
    }
  });

  it('is rejected before it is migrated', async () => {
    const db = new Database(path);
    migrate(db, (await readMigrations()).slice(0, 1));
    db.exec('CREATE TRIGGER quiet AFTER INSERT ON failure BEGIN SELECT 1; END');
    db.close();
    await expect(open()).rejects.toThrow('trigger "quiet"');
    const after = new Database(path, { readonly: true });
    expect(after.pragma('user_version', { simple: true })).toBe(1);
    after.close();
  });
});

describe('a store with an unmodified schema', () => {
  it('is opened for every schema version so far', async () => {
    const migrations = await readMigrations();
    for (const version of migrations.keys()) {
      path = join(directory.path, `version-${version}.db`);
      const db = new Database(path);
      migrate(db, migrations.slice(0, version + 1));
      db.close();
      const store = await open();
      await store.configureProjects(['p'], 1);
      await see(store, 'p', { a: 'RUNNING' }, 10);
      await store.close();
      const reader = await openReader({ path });
      expect(await reader.statuses({})).toHaveLength(1);
      await reader.close();
    }
  });

  it.each([
    ['after ANALYZE', 'ANALYZE'],
    ['after VACUUM', 'VACUUM'],
    [
      'after its tables were renamed for a while',
      'ALTER TABLE record RENAME TO r; ALTER TABLE r RENAME TO record; ALTER TABLE listing RENAME TO l; ALTER TABLE l RENAME TO listing',
    ],
  ])('is opened %s', async (_when, sql) => {
    await writeHistory(path);
    edit(sql);
    await (await open()).close();
    const reader = await openReader({ path });
    expect(await reader.transitions({})).not.toEqual([]);
    await reader.close();
  });
});

it('a connection distrusts the schema, checks cell sizes, keeps its log and rejects writes to the schema', async () => {
  await writeHistory(path);
  const { connect } = await import('../../../../src/store/sqlite/connection.ts');
  const db = connect(path, { readonly: false, busyTimeoutMs: 0 });
  expect(db.pragma('trusted_schema', { simple: true })).toBe(0);
  expect(db.pragma('cell_size_check', { simple: true })).toBe(1);
  expect(db.pragma('journal_mode = OFF', { simple: true })).toBe('wal');
  db.pragma('writable_schema = ON');
  expect(() => db.exec('DELETE FROM sqlite_schema')).toThrow('may not be modified');
  db.close();
});

import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KnownRecord } from '../../../../src/domain/record.ts';
import type { Changes } from '../../../../src/domain/transition.ts';
import { makeDurable } from '../../../../src/store/sqlite/file.ts';
import { migrate, readMigrations } from '../../../../src/store/sqlite/sql/migrate.ts';
import { createKnown } from '../../../../src/store/sqlite/sql/known.ts';
import { createPollCommit } from '../../../../src/store/sqlite/sql/poll-commit.ts';
import { toParts } from '../../../../src/store/sqlite/sql/poll-rows.ts';
import { CONFIGURE } from '../../../../src/store/projects.ts';
import { createChanges } from '../../../../src/store/sqlite/sql/changes.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { createTransactions } from '../../../../src/store/sqlite/sql/transactions.ts';
import { changesOf } from '../../../contract/store/harness.ts';
import { eventLog, fakeClock } from '../../../support/monitor.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const HEALTH = {
  up: true,
  consecutiveFailures: 0,
  reason: undefined,
  lastPollAt: 1,
  lastSuccessAt: 1,
};

describe('a failed transaction', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let db: Database.Database;

  beforeEach(async () => {
    directory = await temporaryDirectory();
    db = new Database(join(directory.path, 'store.db'), { timeout: 10 });
    migrate(db, await readMigrations());
    makeDurable(db);
  });
  afterEach(async () => {
    db.close();
    await directory[Symbol.asyncDispose]();
  });

  function poller() {
    const commitPart = createPollCommit(db);
    const run = createTransactions(db);
    const write = <Result>(work: () => Result) => run({ begins: true, ends: true }, work);
    return {
      run,
      write,
      configure: () => write(() => createChanges(db)(CONFIGURE, { ids: '["p"]', at: 1 })),
      commit: (changes: Changes) => {
        const listings = new Map([['prompt', changes] as const]);
        const { token } = createKnown(db)('p', []);
        const poll = { project: 'p', at: 5, health: HEALTH, token, listings };
        const parts = [...toParts(poll, { summaries: new Map(), experiments: [] })];
        for (const [index, part] of parts.entries()) {
          const place = { begins: index === 0, ends: index === parts.length - 1 };
          run(place, () => commitPart(part));
        }
      },
      known: () => db.prepare('SELECT * FROM record').all(),
    };
  }

  const storedProjects = () => db.prepare('SELECT id FROM project').pluck().all();

  it('changes nothing when the disk is full, and the next one succeeds', async () => {
    const { configure, commit, known } = poller();
    configure();
    commit(manyRunning(10));
    const before = known();
    const pages = Number(db.pragma('page_count', { simple: true }));
    db.pragma(`max_page_count = ${pages}`);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(() => commit(manyRunning(5000))).toThrow(
        expect.objectContaining({ code: 'SQLITE_FULL' }),
      );
      expect(db.inTransaction).toBe(false);
      expect(known()).toEqual(before);
    }
    db.pragma('max_page_count = 1000000');
    commit(manyRunning(5000));
    expect(known()?.length).toBe(5000);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  it('changes nothing when COMMIT fails and leaves it open, and the next one succeeds', () => {
    const { write, configure } = poller();
    configure();
    db.pragma('foreign_keys = ON');
    db.exec('CREATE TABLE parent (x PRIMARY KEY); CREATE TABLE child (x REFERENCES parent)');
    const orphan = () => {
      db.pragma('defer_foreign_keys = ON');
      db.exec('INSERT INTO child VALUES (1)');
    };
    expect(() => write(orphan)).toThrow('FOREIGN KEY constraint failed');
    expect(db.inTransaction).toBe(false);
    expect(db.prepare('SELECT count(*) FROM child').pluck().get()).toBe(0);
    configure();
  });

  it('changes nothing when SQLite has rolled it back itself, and the next one succeeds', () => {
    const { write, configure } = poller();
    const conflict = () => {
      db.exec("INSERT INTO project (id, configured_at, token) VALUES ('x', 1, 'a')");
      db.exec("INSERT OR ROLLBACK INTO project (id, configured_at, token) VALUES ('x', 1, 'b')");
    };
    expect(() => write(conflict)).toThrow('UNIQUE constraint failed');
    expect(storedProjects()).toEqual([]);
    configure();
    expect(storedProjects()).toEqual(['p']);
  });
});

describe('a store that another connection has locked', () => {
  it('rejects a commit as busy, and accepts it once the lock is released', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'store.db');
    const log = eventLog();
    const store = await openStore({ path, clock: fakeClock(), emit: log.emit });
    await store.configureProjects(['p'], 1);
    const other = new Database(path);
    other.exec('BEGIN EXCLUSIVE');
    await expect(store.configureProjects(['q'], 2)).rejects.toMatchObject({
      name: 'StoreError',
      reason: 'busy',
    });
    expect(await store.projects()).toEqual(['p']);
    expect(log.of('store.commit_failed').map(({ reason }) => reason)).toEqual(['busy']);
    other.exec('ROLLBACK');
    other.close();
    await store.configureProjects(['q'], 2);
    expect(await store.projects()).toEqual(['p', 'q']);
    await store.close();
  });
});

function manyRunning(count: number): Changes {
  const records = Array.from({ length: count }, (_, index): KnownRecord => ({
    id: `prompt-${index}`,
    status: 'RUNNING',
    statusRaw: undefined,
    name: 'a name of some length',
    timestamp: undefined,
    since: 1,
    missing: 0,
    gone: false,
  }));
  return changesOf({ baseline: true, records });
}

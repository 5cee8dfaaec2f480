import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { checkStore } from '../../../src/store/check.ts';
import { openStore } from '../../../src/store/sqlite-store.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { see, writeHistory } from './history.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'store.db');
  await writeHistory(path);
});
afterEach(() => directory[Symbol.asyncDispose]());

function damage(sql: string) {
  const db = new Database(path);
  db.unsafeMode();
  db.pragma('foreign_keys = OFF');
  db.exec(sql);
  db.close();
}

async function broken() {
  const results = await checkStore(path);
  return results.flatMap(({ rule, findings }) => findings.map((finding) => `${rule}: ${finding}`));
}

describe('a store', () => {
  it('is sound as the daemon writes it', async () => {
    expect(await broken()).toEqual([]);
  });

  it('is sound while the daemon has it open, and after retention and the removal of a project', async () => {
    const store = await openStore({ path, clock: systemClock, emit: () => {} });
    expect(await broken()).toEqual([]);
    for (const { transitionId } of await store.pendingFailures({ limitPerProject: 9 })) {
      if (transitionId > 2) await store.settleFailure(transitionId, { reason: 'not_found' }, 41);
    }
    // The pending failure of the first move stays where what followed it is deleted.
    await store.prune(35);
    expect(await broken()).toEqual([]);
    await see(store, 'p', { a: 'PENDING', b: 'PENDING' }, 50);
    expect(await broken()).toEqual([]);
    await store.configureProjects([], 60);
    await store.prune(100);
    expect(await broken()).toEqual([]);
    await store.close();
  });

  it.each([
    ['DELETE FROM project', 'its rows refer to rows that exist'],
    [
      "UPDATE record SET status = 'failed' WHERE id = 'a'; DELETE FROM transition",
      'each record has a status of its kind',
    ],
    [
      "UPDATE record SET status = 'NONE' WHERE id = 'a'; DELETE FROM transition",
      'each record has a status of its kind',
    ],
    [
      "UPDATE record SET status = 'PENDING' WHERE id = 'a'",
      "each status is where the last transition led, as far as none was deleted: prompt 'a' of 'p' is PENDING",
    ],
    [
      "UPDATE transition SET from_status = 'PENDING' WHERE record_id = 'a' AND to_status = 'COMPLETED';" +
        "UPDATE transition_total SET from_status = 'PENDING' WHERE to_status = 'COMPLETED'",
      'each transition begins where the one before it ended',
    ],
    ['UPDATE transition SET from_status = to_status', 'no transition leads nowhere'],
    ["DELETE FROM record WHERE id = 'a'", 'each transition is of a record that is known'],
    [
      "UPDATE transition_total SET count = 1 WHERE to_status = 'FAILED'",
      'the totals count every transition that is kept: listing 1, RUNNING to FAILED: 2 kept, 1 counted',
    ],
    ['DELETE FROM transition_total', 'the totals count every transition that is kept'],
    ['DELETE FROM failure', 'each move of a prompt to FAILED is a failure'],
    [
      'UPDATE failure SET transition_id = (SELECT max(transition_id) FROM transition) WHERE transition_id > 2',
      'each failure is a move of a prompt to FAILED',
    ],
    [
      "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'record_aggregate'",
      'its pages and indexes are intact',
    ],
  ])('that had %s is not', async (sql, finding) => {
    damage(sql);
    const found = await broken();
    expect(found.filter((each) => each.startsWith(finding))).not.toEqual([]);
  });
});

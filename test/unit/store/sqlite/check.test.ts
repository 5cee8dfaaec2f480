import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { checkStore } from '../../../../src/store/sqlite/check.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { see, writeHistory } from './history.ts';
import { withCause } from '../../../support/failures.ts';

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

const impossible = (place: string) => `each value is one that evalwatch can have written: ${place}`;

describe('the store check', () => {
  it('finds nothing in a store as the daemon writes it', async () => {
    expect(await broken()).toEqual([]);
  });

  it('finds nothing while the daemon runs, or after retention and the removal of a project', async () => {
    const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
    expect(await broken()).toEqual([]);
    for (const failure of await store.pendingFailures({ limitPerProject: 9 })) {
      if (failure.transitionId <= 2) continue;
      await store.settleFailure(failure, withCause({ reason: 'not_found' }), 41);
    }
    // The pending failure of the first transition stays while later transitions are deleted.
    await store.prune({ before: 35, firstDay: 0 });
    expect(await broken()).toEqual([]);
    await see(store, 'p', { a: 'PENDING', b: 'PENDING' }, 50);
    expect(await broken()).toEqual([]);
    await store.configureProjects([], 60);
    await store.prune({ before: 100, firstDay: 0 });
    expect(await broken()).toEqual([]);
    await store.close();
  });

  it('reports an index that lost its entries', async () => {
    damage('UPDATE record SET missing = 1');
    const image = await readFile(path);
    // Removes the cells from the page of the index.
    const db = new Database(path, { readonly: true });
    const page =
      db
        .prepare<[], number>("SELECT rootpage FROM sqlite_schema WHERE name = 'record_aggregate'")
        .pluck()
        .get() ?? 0;
    db.close();
    image.writeUInt16BE(0, (page - 1) * 4096 + 3);
    await writeFile(path, image);
    expect((await broken()).join()).toContain('its pages and indexes are intact: ');
  });

  it('reports a modified schema and applies no other rule', async () => {
    damage(
      'CREATE TRIGGER quiet AFTER INSERT ON failure BEGIN DELETE FROM settlement; END; DELETE FROM failure',
    );
    expect(await broken()).toEqual([
      `its tables, indexes and triggers are those that evalwatch makes: trigger "quiet" of "failure" is not evalwatch's`,
    ]);
  });

  it.each([
    ['DELETE FROM project', 'each row refers only to rows that exist'],
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
      "each status is the one to which the last transition of its record led, if none was deleted: prompt 'a' of 'p' is PENDING",
    ],
    [
      "UPDATE transition SET from_status = 'PENDING' WHERE record_id = 'a' AND to_status = 'COMPLETED';" +
        "UPDATE transition_total SET from_status = 'PENDING' WHERE to_status = 'COMPLETED'",
      'each transition begins at the status where the previous one of its record ended',
    ],
    ['UPDATE transition SET from_status = to_status', 'each transition leads to another status'],
    ["DELETE FROM record WHERE id = 'a'", 'each transition belongs to a stored record'],
    [
      "UPDATE transition_total SET count = 1 WHERE to_status = 'FAILED'",
      'no total is smaller than the number of stored transitions: listing 1, RUNNING to FAILED: 2 stored, 1 counted',
    ],
    [
      "UPDATE failure SET settled_at = 1, reason = 'not_found' WHERE transition_id = 2",
      'each settled failure, and no pending one, has a settlement number: failure 2',
    ],
    [
      "UPDATE failure SET settled_at = 1, reason = 'not_found' WHERE transition_id = 2",
      'no fewer failures are counted by error_id than settled ones are stored: listing 1: 1 stored, 0 counted',
    ],
    [
      "UPDATE failure SET settled_at = 1, reason = 'not_found' WHERE transition_id = 2",
      'each settled failure, and no other one, has a cause: failure 2',
    ],
    [
      "INSERT INTO error_total SELECT 1, value, 1, 1, 1 FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]')",
      'no project has more than 20 error_ids: listing 1 has 21',
    ],
    [
      "INSERT INTO error_total VALUES (1, 'E', -1, 1, 1)",
      impossible('error total of listing 1: count'),
    ],
    [
      "INSERT INTO error_total VALUES (1, 'E', 1, 1, -1)",
      impossible('error total of listing 1: last_seen_at'),
    ],
    ['DELETE FROM transition_total', 'no total is smaller than the number of stored transitions'],
    ['DELETE FROM failure', 'each move of a prompt to FAILED has a failure'],
    [
      'UPDATE failure SET transition_id = (SELECT max(transition_id) FROM transition) WHERE transition_id > 2',
      'each failure belongs to a move of a prompt to FAILED',
    ],
    [
      'UPDATE prompt_duration SET count = count + 1',
      'no more durations are counted than prompts left the status: listing 1, PENDING: 2 counted, 1 left it',
    ],
    [
      'UPDATE prompt_duration SET status = lower(status)',
      impossible('duration of listing 1: status'),
    ],
    ['UPDATE prompt_duration SET bucket = 99', impossible('duration of listing 1: bucket')],
    ['UPDATE prompt_duration SET day = -1', impossible('duration of listing 1: day')],
    ['UPDATE project SET steady_since = -1', impossible('project 1: steady_since')],
    ['UPDATE transition SET at = 8640000000000001', impossible('transition 1: at')],
    ['UPDATE transition SET at = -1', impossible('transition 1: at')],
    ["UPDATE transition SET from_status = 'x\u001b[2J'", impossible('transition 1: from_status')],
    ["UPDATE listing SET kind = 'x' WHERE kind = 'prompt'", impossible('listing 1: kind')],
    ['UPDATE project SET up = 2', impossible('project 1: up')],
    ["UPDATE project SET reason = 'x'", impossible('project 1: reason')],
    ['UPDATE record SET missing = -1', impossible("record 'a': missing")],
    ['UPDATE record SET name = hex(zeroblob(40000))', impossible("record 'a': name")],
    ['UPDATE transition_total SET count = -1', impossible('total of listing 1: count')],
    ["UPDATE failure SET reason = 'x'", impossible('failure 2: reason')],
    ['UPDATE sqlite_sequence SET seq = 9223372036854775807', impossible('numbers of transition')],
  ])('reports the damage done by %s: %s', async (sql, finding) => {
    damage(sql);
    const found = await broken();
    expect(found.filter((each) => each.startsWith(finding))).not.toEqual([]);
  });
});

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
  db.exec(sql);
  db.close();
}

async function broken() {
  const results = await checkStore(path);
  return results.flatMap(({ rule, findings }) => findings.map((finding) => `${rule}: ${finding}`));
}

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
    const image = await readFile(path);
    // Removes the cells from the page of the index.
    const db = new Database(path, { readonly: true });
    const page =
      db
        .prepare<[], number>("SELECT rootpage FROM sqlite_schema WHERE name = 'transition_at'")
        .pluck()
        .get() ?? 0;
    db.close();
    image.writeUInt16BE(0, (page - 1) * 4096 + 3);
    await writeFile(path, image);
    expect((await broken()).join()).toContain('its pages and indexes are intact: ');
  });

  it.each([
    ['DELETE FROM project', 'each row refers only to rows that exist'],
    [
      "INSERT INTO told VALUES (99, 'chat', 'down', '', NULL, 1)",
      'each row refers only to rows that exist: told of project 99',
    ],
    [
      "INSERT INTO message VALUES ('m', 'chat', 99, 1, '{}')",
      'each row refers only to rows that exist: message of project 99',
    ],
    [
      "INSERT INTO label VALUES (999, 99, 'e')",
      'each row refers only to rows that exist: label of project 99',
    ],
    [
      "INSERT INTO label VALUES (999, 99, 'e'); UPDATE record SET metric = 999 WHERE id = 'a'",
      "each row refers only to rows that exist: prompt 'a' of project 1 has the metric 999",
    ],
    [
      'INSERT INTO finish VALUES (9, 99, 1, 1, 1, 1, 1, 1, 1)',
      'each row refers only to rows that exist: finish of project 99',
    ],
    [
      'INSERT INTO finish VALUES (9, 1, 999, 1, 1, 1, 1, 1, 1)',
      'each row refers only to rows that exist: finish 999 of project 1',
    ],
    [
      'UPDATE experiment SET label_id = 999 WHERE failed = 1',
      'each row refers only to rows that exist: experiment 999 of project 1',
    ],
    [
      'UPDATE experiment SET failed = failed + 1 WHERE failed = 1',
      "each count of an experiment is that of its stored prompts: 'of 40' of 'p', FAILED: 1 stored, 2 counted",
    ],
    [
      'DELETE FROM experiment',
      "each count of an experiment is that of its stored prompts: 'of 40' of 'p', COMPLETED: 1 stored, 0 counted",
    ],
    [
      "UPDATE project SET prompts = json_set(prompts, '$.finishing', json('false'))",
      "each project says whether an experiment of it has ended and not finished: 'p'",
    ],
    [
      "UPDATE record SET status = 'PENDING' WHERE id = 'a'",
      "each status is the one to which the last transition of its record led, if none was deleted: prompt 'a' of 'p' is PENDING, transition ",
    ],
    [
      "DELETE FROM record WHERE id = 'a'",
      "each status is the one to which the last transition of its record led, if none was deleted: prompt 'a' of 'p' is missing, transition ",
    ],
    [
      "UPDATE transition SET from_status = 'PENDING' WHERE record_id = 'a' AND to_status = 'COMPLETED'",
      'each transition begins at the status where the previous one of its record ended',
    ],
    [
      `UPDATE project SET prompts = replace(prompts, '["RUNNING","FAILED",2]', '["RUNNING","FAILED",1]')`,
      "no total is smaller than the number of stored transitions: prompts of 'p', RUNNING to FAILED: 2 stored, 1 counted",
    ],
    [
      `UPDATE project SET prompts = '{}'`,
      'no total is smaller than the number of stored transitions',
    ],
    [
      `UPDATE project SET prompts = '{}'`,
      "each count of a status, and its longest wait, is that of the stored records: prompts of 'p', COMPLETED: 1 stored, 0 counted",
    ],
    [
      "DELETE FROM record WHERE kind = 'dataset'",
      "each count of a status, and its longest wait, is that of the stored records: datasets of 'p', FAILED: 0 stored, 1 counted",
    ],
    [
      "UPDATE record SET status = 'RUNNING' WHERE id = 'a';" +
        `UPDATE project SET prompts = json_set(prompts, '$.counts.COMPLETED', 0, '$.counts.RUNNING', 1)`,
      "each count of a status, and its longest wait, is that of the stored records: prompts of 'p', RUNNING: 1 stored, 1 counted",
    ],
    ['DELETE FROM failure', 'each move of a prompt to FAILED has a failure'],
    [
      "UPDATE failure SET settled_at = 1, reason = 'not_found' WHERE transition_id = 2",
      "no fewer failures are counted by error_id than settled ones are stored: 'p': 1 stored, 0 counted",
    ],
  ])('reports the damage done by %s: %s', async (sql, finding) => {
    damage(sql);
    const found = await broken();
    expect(found.filter((each) => each.startsWith(finding))).not.toEqual([]);
  });
});

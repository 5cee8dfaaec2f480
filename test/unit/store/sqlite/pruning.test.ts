import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { pollItems } from '../../../support/experiments.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { withCause } from '../../../support/failures.ts';

/** Rows that take three transactions to delete. */
const MANY = 4500;
/** Failures that take a transaction each to settle. */
const FAILURES = 50;
const TABLES =
  'project waste record experiment finish label transition failure settlement error_total told message'.split(
    ' ',
  );

it('a pruned project leaves no row behind', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['p'], 1);
  for (const status of ['RUNNING', 'FAILED', 'FAILED']) {
    const items = Array.from({ length: MANY }, (_, index) => {
      const isDone = status === 'FAILED' && index >= FAILURES;
      return [`x${index}`, [isDone ? 'COMPLETED' : status, `x${index}`]] as const;
    });
    await pollItems(store, 'p', Object.fromEntries(items), 5);
  }
  for (const failure of await store.pendingFailures({ limitPerProject: 9999 })) {
    await store.settleFailure(failure, withCause({ reason: 'not_found' }), 6);
  }
  const told = { receiver: 'chat', kind: 'stuck', promptId: 'x', project: 'p' } as const;
  await store.notifications.subscribe({ name: 'chat', on: ['stuck'] }, 7);
  const token = (await store.notifications.token(told)) ?? '';
  const head = { schema: 1, id: 'm', timestamp: new Date(8).toISOString() } as const;
  const message = { ...head, type: 'test', data: { receiver: 'chat' } } as const;
  const noted = [{ ...told, mark: 5 }];
  expect(await store.notifications.compose({ ...told, token, told: noted, message })).toBe(true);
  const { end } = await store.events({ transition: 0, settlement: 0, finish: 0 }, 1);
  expect(end).toEqual({ transition: MANY, settlement: FAILURES, finish: MANY });
  await store.configureProjects([], 10);
  await store.prune({ before: 11, firstDay: 0 });
  await store.close();

  const db = new Database(path, { readonly: true });
  const rows = TABLES.map((table) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
  expect(rows).toEqual(TABLES.map(() => 0));
  db.close();
});

it('the labels that nothing has any more are deleted in projects with many', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['p', 'few'], 1);
  for (const name of ['old', 'new']) {
    for (const [project, count] of [
      ['p', MANY],
      ['few', 500],
    ] as const) {
      const ids = Array.from({ length: count }, (_, id) => id);
      const items = ids.map((id) => [`m-${id}`, ['RUNNING', `${name}-${id}`]] as const);
      await pollItems(store, project, Object.fromEntries(items), 1000);
    }
  }
  await store.prune({ before: 2000, firstDay: 0 });
  await store.close();
  const db = new Database(path, { readonly: true });
  const text = `SELECT p.id, count(*) FROM label JOIN project p USING (project_key) GROUP BY 1 ORDER BY 1`;
  expect(db.prepare(text).raw().all()).toEqual([
    ['few', 1000],
    ['p', MANY],
  ]);
  db.close();
});

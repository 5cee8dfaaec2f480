import { join } from 'node:path';
import { expect, it } from 'vitest';
import { compareListing } from '../../../../src/domain/transition.ts';
import type { StoreSnapshot } from '../../../../src/monitor/ports/store.ts';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStore, type SqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { UP } from '../../../contract/store/harness.ts';
import { withCause } from '../../../support/failures.ts';
import { fakeClock, listingOf } from '../../../support/monitor.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** More than two pages of projects. */
const IDS = Array.from({ length: 600 }, (_, n) => `p${String(n).padStart(3, '0')}`);

/** Opens a store with these projects, and a reader of it. */
async function openBoth(opened: AsyncDisposableStack) {
  const directory = opened.use(await temporaryDirectory());
  const path = join(directory.path, 'store.db');
  const store = await openStore({ path, clock: fakeClock(), emit: () => {} });
  opened.defer(() => store.close());
  const reader = await openReader({ path });
  opened.defer(() => reader.close());
  await store.configureProjects(IDS, 1);
  return { store, reader };
}

/** Prepares the commit of a listing with this number of prompts in a status. */
async function prepare(store: SqliteStore, project: string, count: number, status = 'RUNNING') {
  const { token, listings: known } = await store.loadKnown(project, ['prompt']);
  const before = known.get('prompt') ?? { baselined: false, records: new Map() };
  const statuses = Array.from({ length: count }, (_, n) => [n, status]);
  const listing = listingOf(Object.fromEntries(statuses));
  const { changes } = await compareListing(before, listing, { at: 1, missingAfter: 3 });
  const listings = new Map([['prompt', changes] as const]);
  return async () => await store.commitPoll({ project, at: 1, health: UP, token, listings });
}

function runningOf({ projects }: StoreSnapshot): Readonly<Record<string, number | undefined>> {
  return Object.fromEntries(
    projects.map(({ project, listings }) => {
      return [project, listings.get('prompt')?.counts.get('RUNNING')];
    }),
  );
}

it('a snapshot has in every page all commits made before it was requested', async () => {
  await using opened = new AsyncDisposableStack();
  const { store, reader } = await openBoth(opened);
  const commits = await Promise.all(IDS.map((id, n) => prepare(store, id, 1 + (n % 3))));
  await Promise.all(commits.map((commit) => commit()));
  const expected = IDS.map((id, n) => [id, 1 + (n % 3)] as const);

  const commit = await prepare(store, 'p520', 4);
  const first = store.snapshot();
  await Promise.all([commit(), store.configureProjects(IDS.slice(300), 2)]);
  const second = await store.snapshot();

  expect(Object.keys(runningOf(await first))).toEqual(expect.arrayContaining(IDS.slice(300)));
  expect(runningOf(second)).toEqual(Object.fromEntries([...expected.slice(300), ['p520', 4]]));
  expect(await reader.snapshot()).toEqual(second);
});

it('a snapshot has what is settled while a reload adds its project again', async () => {
  await using opened = new AsyncDisposableStack();
  const { store, reader } = await openBoth(opened);
  for (const status of ['RUNNING', 'FAILED']) {
    for (const id of ['p000', 'p599']) await (await prepare(store, id, 1, status))();
  }
  const pending = await store.pendingFailures({ limitPerProject: 1 });
  await store.configureProjects([], 2);
  await Promise.all([
    store.configureProjects(IDS, 3),
    ...pending.map((failure) =>
      store.settleFailure(failure, withCause({ reason: 'not_found' }), 4),
    ),
  ]);
  expect(pending).toHaveLength(2);
  expect(await store.snapshot()).toEqual(await reader.snapshot());
});

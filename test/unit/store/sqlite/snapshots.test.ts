import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openReader } from '../../../../src/store/sqlite/sqlite-reader.ts';
import { openStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { pollItems } from '../../../support/experiments.ts';
import { withCause } from '../../../support/failures.ts';
import { fakeClock } from '../../../support/monitor.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** More than two pages of projects. */
const IDS = Array.from({ length: 600 }, (_, n) => `p${String(n).padStart(3, '0')}`);

it('a snapshot has what is settled while a reload adds its project again', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const store = await openStore({ path, clock: fakeClock(), emit: () => {} });
  const reader = await openReader({ path });
  await store.configureProjects(IDS, 1);
  for (const x of ['RUNNING', 'FAILED']) {
    for (const id of ['p000', 'p599']) await pollItems(store, id, { x }, 1);
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
  await reader.close();
  await store.close();
});

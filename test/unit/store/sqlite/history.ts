import { systemClock } from '../../../../src/app/clock.ts';
import { countDurations } from '../../../../src/domain/limits.ts';
import type { Kind } from '../../../../src/domain/status.ts';
import type { Store } from '../../../../src/monitor/ports/store.ts';
import { listingOf } from '../../../support/monitor.ts';
import { compareListing } from '../../../../src/domain/transition.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';

/** Commits a listing of `project` that shows these statuses by id, each with labels of its own. */
export async function see(
  store: Store,
  project: string,
  statuses: Readonly<Record<string, string>>,
  at: number,
  kind: Kind = 'prompt',
): Promise<void> {
  const { token, listings } = await store.loadKnown(project, [kind]);
  const known = listings.get(kind);
  if (known === undefined) throw new Error('not loaded');
  const { records, ...listing } = listingOf(statuses);
  const labelled = new Map(
    [...records].map(([id, record]) => {
      return [id, { ...record, experiment: `of ${at}`, metric: id }] as const;
    }),
  );
  const { changes } = await compareListing(
    known,
    { ...listing, records: labelled },
    { at, missingAfter: 3 },
  );
  const health = await store.loadHealth(project);
  const durations = kind === 'prompt' ? countDurations(changes.transitions, at) : [];
  const commit = { project, at, health, token, durations };
  await store.commitPoll({ ...commit, listings: new Map([[kind, changes]]) });
}

/** Makes a store at `path` whose project `p` has transitions of two prompts, b's to FAILED twice, and of a dataset. */
export async function writeHistory(path: string): Promise<void> {
  const store = await openStoreInProcess({ path, clock: systemClock, emit: () => {} });
  await store.configureProjects(['p'], 1);
  await see(store, 'p', { a: 'PENDING', b: 'RUNNING' }, 10);
  await see(store, 'p', { d: 'PENDING' }, 10, 'dataset');
  await see(store, 'p', { a: 'RUNNING', b: 'FAILED' }, 20);
  await see(store, 'p', { a: 'RUNNING', b: 'RUNNING' }, 30);
  await see(store, 'p', { a: 'COMPLETED', b: 'FAILED' }, 40);
  await see(store, 'p', { d: 'FAILED' }, 40, 'dataset');
  await store.close();
}

import { systemClock } from '../../../../src/app/clock.ts';
import type { Kind } from '../../../../src/domain/status.ts';
import type { Store } from '../../../../src/monitor/ports/store.ts';
import { pollItems } from '../../../support/experiments.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';

/** Commits a listing of `project` that shows these statuses by id, each with labels of its own. */
export async function see(
  store: Store,
  project: string,
  statuses: Readonly<Record<string, string>>,
  at: number,
  kind: Kind = 'prompt',
): Promise<void> {
  const items = Object.entries(statuses).map(
    ([id, status]) => [id, [status, { experiment: `of ${at}`, metric: id }]] as const,
  );
  const health = await store.loadHealth(project);
  await pollItems(store, project, Object.fromEntries(items), at, { kind, health });
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

import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import type { Coordinator } from '../../../src/coordination/ports.ts';
import type { OwnershipChange } from '../../../src/coordination/share.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import type { SharedStore } from '../../../src/store/open.ts';
import type { FailingProject } from '../../../src/store/postgres/postgres-store.ts';
import { createWorkSharing } from '../../../src/app/work-sharing.ts';
import { fakeClock } from '../../support/monitor.ts';
import { LEASE, sharedRows } from '../coordination/world.ts';

const PROJECTS = Array.from({ length: 100 }, (_, n) => `p${n}`);
const CONFIG = {
  service: { baseUrl: 'http://127.0.0.1' },
  missingAfter: 3,
  jitterMs: 0,
  projects: PROJECTS.map((id) => ({ id })),
} as unknown as Config;

/** Starts a worker over rows in memory, which claims all projects. */
async function startSharing() {
  const rows = sharedRows();
  const epochs = new Map<string, number>();
  const failing: FailingProject[] = [];
  const pendingFailures = vi.fn<Store['pendingFailures']>(() => Promise.resolve([]));
  const join = vi.fn<Coordinator['join']>(rows.coordinator.join);
  const shared = {
    name: 'w',
    leaseMs: LEASE,
    coordinator: { ...rows.coordinator, join },
    store: {
      own: (project: string, epoch: number) => epochs.set(project, epoch),
      epoch: (project: string) => epochs.get(project),
      disown: (project: string) => epochs.delete(project),
      flush: () => Promise.resolve(),
      failingProjects: () => Promise.resolve(failing),
      pendingFailures,
    },
  } as unknown as SharedStore;
  const sharing = createWorkSharing({
    shared,
    clock: { ...fakeClock(), monotonic: () => performance.now() },
    emit: () => {},
    stopping: new AbortController().signal,
    onError: (error) => {
      throw error;
    },
  });
  const onChange = vi.fn<(change: OwnershipChange) => void>();
  sharing.onOwnershipChange(onChange);
  sharing.configure(CONFIG);
  await sharing.worker.start();
  await turn();
  return { sharing, onChange, join, failing, pendingFailures };
}

it('a commit refused for its epoch drops the project at once, one refused for its version does not', async () => {
  const { sharing, onChange } = await startSharing();
  const taken = onChange.mock.calls.flatMap(([change]) => change.taken);
  expect(taken.map(({ project }) => project).toSorted()).toEqual(PROJECTS.toSorted());
  for (const project of PROJECTS) {
    sharing.observe({
      type: 'store.commit_refused',
      project,
      reason: 'epoch',
      isFromEarlierOwnership: false,
    });
    expect(onChange).toHaveBeenLastCalledWith({ taken: [], dropped: [project] });
    expect(sharing.worker.mayPoll(project)).toBe(false);
  }
  onChange.mockClear();
  sharing.observe({
    type: 'store.commit_refused',
    project: 'p0',
    reason: 'version',
    isFromEarlierOwnership: false,
  });
  expect(onChange).not.toHaveBeenCalled();
  await sharing.worker.stop();
});

it('a refused commit from an earlier ownership does not drop the project', async () => {
  const { sharing } = await startSharing();
  sharing.observe({
    type: 'store.commit_refused',
    project: 'p0',
    reason: 'epoch',
    isFromEarlierOwnership: true,
  });
  expect(sharing.worker.mayPoll('p0')).toBe(true);
  await sharing.worker.stop();
});

it('a worker joins with the digest of its configuration', async () => {
  const { sharing, join } = await startSharing();
  expect(join.mock.calls[0]?.[0].configDigest).toMatch(/^[0-9a-f]{16}$/);
  await sharing.worker.stop();
});

it('pending failures are limited to projects configured here and to removed ones', async () => {
  const { sharing, failing, pendingFailures } = await startSharing();
  const query = { dueAt: 1, limitPerProject: 2 };
  const theirs = { project: 'theirs', removed: false };
  failing.push(theirs);
  expect(await sharing.pendingFailures(query)).toEqual([]);
  expect(pendingFailures).not.toHaveBeenCalled();

  failing.push({ project: 'gone', removed: true }, { project: 'p7', removed: false });
  await sharing.pendingFailures(query);
  expect(pendingFailures).toHaveBeenLastCalledWith({ ...query, projects: ['gone', 'p7'] });

  await sharing.pendingFailures({ ...query, projects: ['p1'] });
  expect(pendingFailures).toHaveBeenLastCalledWith({ ...query, projects: ['p1'] });
  sharing.configure({ ...CONFIG, projects: [] });
  failing.splice(0, 2);
  pendingFailures.mockClear();
  expect(await sharing.pendingFailures(query)).toEqual([]);
  expect(pendingFailures).not.toHaveBeenCalled();
  await sharing.worker.stop();
});

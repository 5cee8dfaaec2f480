import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import type { OwnershipChange } from '../../../src/coordination/worker.ts';
import type { FinishedPoll } from '../../../src/monitor/events.ts';
import type { SharedStore } from '../../../src/store/open.ts';
import { WorkSharing } from '../../../src/app/work-sharing.ts';
import { fakeClock } from '../../support/monitor.ts';
import { LEASE, sharedRows } from '../coordination/world.ts';

const PROJECTS = Array.from({ length: 100 }, (_, n) => `p${n}`);
const CONFIG = {
  service: { baseUrl: 'http://127.0.0.1' },
  missingAfter: 3,
  jitterMs: 0,
  projects: PROJECTS.map((id) => ({ id })),
} as unknown as Config;
const RUN = { dueAt: 0, nextAt: 7 };
const FINISHED = {} as FinishedPoll;

/** Starts a worker over rows in memory, which claims all projects. */
async function startSharing() {
  const rows = sharedRows();
  rows.configure(PROJECTS);
  const tokens = new Map<string, string>();
  const renew = vi.spyOn(rows.coordinator, 'renew');
  const ownership = {
    tokens,
    own: (project: string, token: string) => tokens.set(project, token),
    disown: (project: string) => tokens.delete(project),
    isCommitting: () => false,
    planTick: vi.fn<(project: string, at: number) => void>(),
    flush: () => Promise.resolve(),
  };
  const shared = {
    name: 'w',
    leaseMs: LEASE,
    coordinator: rows.coordinator,
    store: { ownership },
  } as unknown as SharedStore;
  const stopping = new AbortController();
  const sharing = new WorkSharing({
    shared,
    clock: { ...fakeClock(), monotonic: () => performance.now() },
    emit: () => {},
    stopping: stopping.signal,
    onError: (error) => {
      throw error;
    },
  });
  const onChange = vi.fn<(change: OwnershipChange) => void>();
  sharing.onOwnershipChange(onChange);
  sharing.configure(CONFIG);
  await sharing.worker.start();
  await turn();
  return { sharing, rows, onChange, renew, ownership, tokens, stopping };
}

it('a worker takes the configured projects, under the digest of its configuration', async () => {
  const { sharing, onChange, renew } = await startSharing();
  const taken = onChange.mock.calls.flatMap(([change]) => change.taken);
  expect(taken.map(({ project }) => project).toSorted()).toEqual(PROJECTS.toSorted());
  expect(renew.mock.calls[0]?.[0].configDigest).toMatch(/^[0-9a-f]{16}$/);
  await sharing.worker.stop();
});

it('a poll is repeated at most twice while its commit is refused and its project still owned', async () => {
  const { sharing, ownership, tokens, stopping } = await startSharing();
  const poll = vi.fn<() => Promise<FinishedPoll | undefined>>(() => Promise.resolve(undefined));
  expect(await sharing.poll('p0', RUN, poll)).toBeUndefined();
  expect(poll).toHaveBeenCalledTimes(3);
  expect(ownership.planTick.mock.calls).toEqual([['p0', 7]]);

  poll.mockClear().mockResolvedValueOnce(undefined).mockResolvedValueOnce(FINISHED);
  expect(await sharing.poll('p0', RUN, poll)).toBe(FINISHED);
  expect(poll).toHaveBeenCalledTimes(2);

  poll.mockReset().mockImplementation(async () => {
    tokens.delete('p1');
    sharing.worker.refused('p1');
    return undefined;
  });
  expect(await sharing.poll('p1', RUN, poll)).toBeUndefined();
  expect(poll).toHaveBeenCalledTimes(1);

  stopping.abort();
  expect(await sharing.poll('p2', RUN, poll)).toBeUndefined();
  expect(poll).toHaveBeenCalledTimes(2);
  await sharing.worker.stop();
});

it('a stop keeps a project while it is polled, or a failure of it is reported', async () => {
  const { sharing, rows } = await startSharing();
  const poll = Promise.withResolvers<FinishedPoll>();
  sharing.watchReports((project) => project === 'p1');
  const polling = sharing.poll('p0', RUN, () => poll.promise);
  const work = Promise.withResolvers<void>();
  const stopped = sharing.worker.stop(work.promise);
  await turn();
  expect(rows.projectsOf('w')).toEqual(['p0', 'p1']);
  poll.resolve(FINISHED);
  await polling;
  await vi.waitFor(() => expect(rows.projectsOf('w')).toEqual(['p1']));
  work.resolve();
  await stopped;
  expect(rows.projectsOf('w')).toEqual([]);
});

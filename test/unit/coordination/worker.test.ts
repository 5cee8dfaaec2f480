import type { FinishedPoll } from '../../../src/monitor/events.ts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Coordinator } from '../../../src/coordination/ports.ts';
import type { WorkerOptions } from '../../../src/coordination/worker.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { BEAT, crew, ids, LEASE, pass, type sharedRows, startOver, workerOver } from './world.ts';

let rows: ReturnType<typeof sharedRows>;
beforeEach(() => {
  rows = startOver();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('workers that share projects', () => {
  it.each([
    [1, 10, [10]],
    [2, 10, [5, 5]],
    [3, 10, [4, 4, 2]],
    [3, 2, [1, 1, 0]],
    [2, 1200, [600, 600]],
  ])('own a fair share: %i workers of %i projects', async (count, projects, shares) => {
    const workers = await crew(rows, count, ids(projects));
    const owned = workers.map(({ may }) => may());
    expect(owned.map(({ length }) => length).toSorted((a, b) => b - a)).toEqual(shares);
    expect(new Set(owned.flat()).size).toBe(projects);
  });

  it('claim only while a project is free', async () => {
    const claim = vi.fn<Coordinator['claim']>(rows.coordinator.claim);
    rows.leases.set('other', Infinity);
    const { worker, may } = workerOver(rows, 'w', ids(4), {
      coordinator: { ...rows.coordinator, claim },
    });
    Object.assign(rows.projects.get('p3') ?? {}, { owner: 'other' });
    await worker.start();
    await pass(3 * BEAT);
    expect(may()).toEqual(['p0', 'p1', 'p2']);
    const { length } = claim.mock.calls;
    await pass(3 * BEAT);
    expect(claim).toHaveBeenCalledTimes(length);
    rows.leases.delete('other');
    await pass(BEAT);
    expect(may()).toEqual(ids(4));
  });

  it.each([
    ['that has fewer projects', ids(50), 'old'],
    ['with no projects and an empty digest', ids(0), ''],
    ['with the same projects and an empty digest', ids(100), ''],
  ])('reserve no share for a worker %s', async (_, projects, digest) => {
    const first = workerOver(rows, 'first', ids(100));
    await first.worker.start();
    const second = workerOver(rows, 'second', projects, { digest });
    await second.worker.start();
    await pass(4 * BEAT);
    expect(first.may()).toHaveLength(100);
    expect(first.worker.liveWorkers()).toBe(2);
  });

  it('take what a claim has got whose answer was lost', async () => {
    const only = workerOver(rows, 'w', ids(3));
    only.database('loses answers to claims');
    await only.worker.start();
    expect(only.may()).toEqual([]);
    only.database('none');
    await pass(1000);
    expect(only.may()).toEqual(ids(3));
  });

  it('give back what they have not configured, in batches of 1000', async () => {
    const release = vi.fn<Coordinator['release']>(rows.coordinator.release);
    const coordinator = { ...rows.coordinator, release };
    const only = workerOver(rows, 'w', ids(2500), { coordinator });
    await only.worker.start();
    only.worker.configure(ids(200), 'other');
    expect(only.may()).toHaveLength(200);
    await pass(BEAT);
    expect(release.mock.calls.map(([, projects]) => projects.size)).toEqual([1000, 1000, 300]);
    expect(rows.projectsOf('w')).toHaveLength(200);
    expect(only.log.of('worker.released')).toMatchObject([{ projects: 2300, owned: 200 }]);
  });
});

describe('a project that is given back', () => {
  it('is kept while it is busy', async () => {
    const first = workerOver(rows, 'first', ids(2));
    await first.worker.start();
    for (const project of ids(2)) first.busy.add(project);
    const second = workerOver(rows, 'second', ids(2));
    await second.worker.start();
    await pass(2 * BEAT);
    expect([first.may(), second.may()]).toEqual([ids(2), []]);
    first.busy.delete('p1');
    await pass(2 * BEAT);
    expect([first.may(), second.may()]).toEqual([['p0'], ['p1']]);
    expect(first.tokens.has('p1')).toBe(false);
  });

  it.each(['loses releases', 'loses answers to releases'] as const)(
    'is not owned again under the same token if the database %s',
    async (fault) => {
      const first = workerOver(rows, 'first', ids(2));
      await first.worker.start();
      const before = new Map(first.tokens);
      const second = workerOver(rows, 'second', ids(2));
      await second.worker.start();
      first.database(fault);
      await pass(BEAT);
      // The statement may arrive at any time from now on.
      expect(first.tokens.size).toBe(1);
      await pass(2 * BEAT);
      const kept = [...first.tokens.keys()];
      expect(kept).toHaveLength(1);
      first.database('none');
      await pass(2 * BEAT);
      expect(first.may().length + second.may().length).toBe(2);
      expect(second.may()).toHaveLength(1);
      for (const project of second.may()) {
        expect(rows.projects.get(project)?.token).not.toBe(before.get(project));
      }
      expect(first.log.of('worker.lease_lost')).toEqual([]);
    },
  );
});

it('a project whose health cannot be stored is not given back, but taken again', async () => {
  const first = workerOver(rows, 'first', ids(2));
  await first.worker.start();
  const before = new Map(first.tokens);
  const second = workerOver(rows, 'second', ids(2));
  await second.worker.start();
  first.database('loses health');
  await pass(BEAT);
  expect(first.may()).toEqual([]);
  expect(rows.projectsOf('first')).toEqual(ids(2));
  await pass(4 * BEAT);
  expect([rows.projectsOf('first'), first.tokens]).toEqual([ids(2), before]);
  first.database('none');
  await pass(2 * BEAT);
  expect([first.may().length, second.may().length]).toEqual([1, 1]);
});

it('a project whose failure begins to be reported while its health is stored is kept until that ends', async () => {
  const first = workerOver(rows, 'first', ids(2));
  await first.worker.start();
  first.duringFlush(() => {
    for (const project of ids(2)) first.busy.add(project);
  });
  const second = workerOver(rows, 'second', ids(2));
  await second.worker.start();
  await pass(3 * BEAT);
  expect([rows.projectsOf('first'), first.may()]).toEqual([ids(2), ids(2)]);
  first.duringFlush(() => {});
  first.busy.clear();
  await pass(2 * BEAT);
  expect([first.may().length, second.may().length]).toEqual([1, 1]);
});

describe('the list of the database', () => {
  it('decides what a worker owns: others are dropped, and those under another token taken anew', async () => {
    const [only] = await crew(rows, 1, ids(3));
    rows.leases.set('other', Infinity);
    Object.assign(rows.projects.get('p0') ?? {}, { owner: 'other', token: rows.nextToken() });
    const token = rows.nextToken();
    Object.assign(rows.projects.get('p1') ?? {}, { token });
    await pass(BEAT);
    expect(only?.may()).toEqual(['p1', 'p2']);
    expect(only?.tokens.get('p1')).toBe(token);
    expect(only?.changed.slice(-2)).toEqual([
      { taken: [], dropped: ['p0'] },
      { taken: ['p1'], dropped: ['p1'] },
    ]);
  });

  it('does not count for a project whose commit is under way, or was made meanwhile', async () => {
    const [only] = await crew(rows, 1, ids(2));
    only?.committing.add('p0');
    Object.assign(rows.projects.get('p0') ?? {}, { token: 'by the commit' });
    const { length } = only?.changed ?? [];
    await pass(2 * BEAT);
    only?.tokens.set('p0', 'by the commit');
    only?.committing.delete('p0');
    await pass(BEAT);
    expect(only?.changed).toHaveLength(length ?? 0);
    expect(only?.may()).toEqual(ids(2));
  });

  it('has removed projects until none of their failures is pending', async () => {
    const [only] = await crew(rows, 1, ids(3));
    for (const project of ['p1', 'p2']) {
      Object.assign(rows.projects.get(project) ?? {}, { hasPending: project === 'p2' });
    }
    rows.configure(['p0']);
    await pass(2 * BEAT);
    // This worker is still configured with them.
    expect(only?.may()).toEqual(['p0']);
    expect([...(only?.tokens.keys() ?? [])]).toEqual(['p0', 'p2']);
    expect(rows.projectsOf(ids(1)[0] ?? '')).toEqual(['p0', 'p2']);
    Object.assign(rows.projects.get('p2') ?? {}, { hasPending: false });
    only?.busy.add('p2');
    await pass(BEAT);
    expect([...(only?.tokens.keys() ?? [])]).toEqual(['p0']);
    expect(rows.projectsOf('p0')).toEqual(['p0', 'p2']);
    only?.busy.delete('p2');
    await pass(2 * BEAT);
    expect(rows.projectsOf('p0')).toEqual(['p0']);
  });

  it('gives a removed project with pending failures to any worker', async () => {
    const [only] = await crew(rows, 1, ids(1));
    rows.projects.set('gone', { owner: 'dead', token: 't', isRemoved: true, hasPending: true });
    await pass(BEAT);
    expect(only?.tokens.has('gone')).toBe(true);
    expect(only?.may()).toEqual(['p0']);
  });
});

describe('a refused commit', () => {
  it('drops the project, which is taken anew soon', async () => {
    const [only] = await crew(rows, 1, ids(100));
    const renew = vi.spyOn(rows.coordinator, 'list');
    for (const project of ids(100)) {
      Object.assign(rows.projects.get(project) ?? {}, { token: rows.nextToken() });
      only?.refuse(project);
      expect(only?.worker.mayPoll(project)).toBe(false);
      await pass(1);
    }
    expect(only?.may()).toEqual([]);
    await pass(BEAT / 2);
    expect(only?.may()).toHaveLength(100);
    renew.mockRestore();
  });

  it('from an earlier ownership changes nothing', async () => {
    const [only] = await crew(rows, 1, ids(1));
    only?.worker.observe({ type: 'store.commit_refused', project: 'p0' });
    expect(only?.may()).toEqual(['p0']);
  });
});

describe('a poll', () => {
  const FINISHED = {} as FinishedPoll;

  it('is repeated at most twice while its commit is refused and its project still owned', async () => {
    const [only] = await crew(rows, 1, ids(3));
    if (only === undefined) throw new Error('there is one');
    const { worker, refuse, stopping } = only;
    const poll = vi.fn<() => Promise<FinishedPoll | undefined>>(() => Promise.resolve(undefined));
    expect(await worker.poll('p0', poll)).toBeUndefined();
    expect(poll).toHaveBeenCalledTimes(3);

    poll.mockClear().mockResolvedValueOnce(undefined).mockResolvedValueOnce(FINISHED);
    expect(await worker.poll('p0', poll)).toBe(FINISHED);
    expect(poll).toHaveBeenCalledTimes(2);

    poll.mockReset().mockImplementation(async () => {
      refuse('p1');
      return undefined;
    });
    expect(await worker.poll('p1', poll)).toBeUndefined();
    expect(poll).toHaveBeenCalledTimes(1);

    stopping.abort();
    expect(await worker.poll('p2', poll)).toBeUndefined();
    expect(poll).toHaveBeenCalledTimes(2);
  });

  it('keeps its project until it ends, also while the worker stops', async () => {
    const [only] = await crew(rows, 1, ids(2));
    const poll = Promise.withResolvers<FinishedPoll>();
    const polling = only?.worker.poll('p0', () => poll.promise);
    const work = Promise.withResolvers<void>();
    const stopped = only?.worker.stop(work.promise);
    await pass(10);
    expect(rows.projectsOf('p0')).toEqual(['p0']);
    poll.resolve(FINISHED);
    await polling;
    await pass(300);
    expect(rows.projectsOf('p0')).toEqual([]);
    work.resolve();
    await stopped;
  });
});

describe('a lost lease', () => {
  it('is noticed if it ends by the clock of the database alone', async () => {
    const [only] = await crew(rows, 1, ids(2));
    const before = only?.worker.lease();
    rows.leases.set('p0', 0);
    await pass(BEAT);
    expect(only?.log.of('worker.lease_lost')).toMatchObject([{ projects: 2 }]);
    expect(only?.worker.lease()).not.toBe(before);
    expect(only?.may()).toEqual(ids(2));
  });

  it('drops all projects when it expires, even if the database does not respond', async () => {
    const [only] = await crew(rows, 1, ids(2));
    const owned = () => ids(2).filter((id) => only?.worker.owns(id));
    only?.database('hangs');
    await pass(LEASE / 2 + BEAT);
    expect([only?.may(), owned()]).toEqual([[], ids(2)]);
    await pass(LEASE / 2);
    // Nothing has asked since.
    expect(only?.log.of('worker.lease_lost')).toMatchObject([{ projects: 2, owned: 0 }]);
    expect(only?.changed.at(-1)).toEqual({ taken: [], dropped: ids(2) });
    expect(only?.tokens.size).toBe(0);
    expect(owned()).toEqual([]);
  });

  it('is followed by one with another number within 1 s after the database recovers', async () => {
    const [only] = await crew(rows, 1, ids(2));
    const before = only?.worker.lease();
    expect(before).toBeDefined();
    only?.database('fails');
    await pass(10 * LEASE);
    expect([only?.worker.lease(), only?.worker.isConnected()]).toEqual([undefined, false]);
    only?.database('none');
    await pass(1000);
    expect(only?.worker.lease()).toBeDefined();
    expect(only?.worker.lease()).not.toBe(before);
    expect(only?.worker.isConnected()).toBe(true);
    // What the database still has.
    expect(only?.may()).toEqual(ids(2));
  });

  it('is noticed before the next poll of a process that was suspended, even if no timer fires', async () => {
    const [only] = await crew(rows, 1, ids(2));
    vi.spyOn(performance, 'now').mockReturnValue(performance.now() + LEASE);
    expect(only?.worker.mayPoll('p0')).toBe(false);
    expect(only?.log.of('worker.lease_lost').length).toBe(1);
  });

  it('is not restored by an answer that is read too late', async () => {
    const renew: Coordinator['renew'] = async (worker) => {
      const answer = await rows.coordinator.renew(worker);
      // The process is stopped meanwhile.
      vi.spyOn(performance, 'now').mockReturnValue(performance.now() + LEASE);
      return answer;
    };
    const only = workerOver(rows, 'w', ids(2), { coordinator: { ...rows.coordinator, renew } });
    await only.worker.start();
    expect(only.may()).toEqual([]);
    expect(only.worker.lease()).toBeUndefined();
  });

  it.each(['claim', 'list', 'load'] as const)(
    'ignores the answer to an earlier %s',
    async (call) => {
      const gate = Promise.withResolvers<void>();
      const coordinator = {
        ...rows.coordinator,
        [call]: async (...asked: [never, never]) => {
          await gate.promise;
          return await rows.coordinator[call](...asked);
        },
      };
      const only = workerOver(rows, 'w', ids(2), { coordinator, leaseMs: LEASE });
      void only.worker.start();
      await pass(LEASE / 2 - 1);
      vi.spyOn(performance, 'now').mockReturnValue(performance.now() + LEASE);
      gate.resolve();
      await pass(0);
      expect(only.tokens.size).toBe(0);
    },
  );
});

describe('workers with different configurations', () => {
  const told = ({ log }: ReturnType<typeof workerOver>) => log.of('worker.config_differs');

  it('are reported once per difference, after 5 minutes', async () => {
    const first = workerOver(rows, 'first', ids(2), { digest: 'new' });
    const second = workerOver(rows, 'second', ids(2), { digest: 'old' });
    await first.worker.start();
    await second.worker.start();
    await pass(5 * 60_000 - BEAT);
    expect(told(first)).toEqual([]);
    await pass(10 * 60_000);
    expect(told(first)).toMatchObject([{ worker: 'first', others: ['second'] }]);
    expect(told(second)).toMatchObject([{ worker: 'second', others: ['first'] }]);

    second.worker.configure(ids(2), 'new');
    await pass(10 * 60_000);
    // They agree again before 5 minutes have passed.
    second.worker.configure(ids(2), 'newer');
    await pass(4 * 60_000);
    first.worker.configure(ids(2), 'newer');
    await pass(10 * 60_000);
    expect(told(first).length).toBe(1);
    second.worker.configure(ids(2), 'newest');
    await pass(10 * 60_000);
    expect(told(first).length).toBe(2);
  });

  it('are not reported if one of them has an empty digest', async () => {
    const first = workerOver(rows, 'first', ids(2));
    const second = workerOver(rows, 'second', ids(1), { digest: '' });
    await first.worker.start();
    await second.worker.start();
    await pass(10 * 60_000);
    expect([...told(first), ...told(second)]).toEqual([]);
  });
});

describe('projects that the database has lost', () => {
  /** Creates a worker with a mock of `restoreProjects`. */
  function watched(id: string, projects: readonly string[], digest = 'd') {
    const restoreProjects = vi.fn<WorkerOptions['restoreProjects']>(async (asked) => {
      rows.configure(asked);
      return true;
    });
    return { ...workerOver(rows, id, projects, { restoreProjects, digest }), restoreProjects };
  }

  it('are configured again after one lease, and then polled', async () => {
    const one = watched('one', ids(2));
    const other = watched('other', ids(2));
    await one.worker.start();
    await other.worker.start();
    rows.configure(['p0']);
    await pass(LEASE);
    expect(one.restoreProjects).not.toHaveBeenCalled();
    expect(other.restoreProjects).not.toHaveBeenCalled();
    await pass(2 * BEAT);
    const told = [one, other].flatMap(({ log }) => log.of('worker.projects_restored'));
    expect(told[0]).toMatchObject({ projects: 2 });
    await pass(4 * LEASE);
    const calls = [one, other].flatMap(({ restoreProjects }) => restoreProjects.mock.calls);
    expect(calls.length).toBeLessThan(3);
    expect(one.may().length + other.may().length).toBe(2);
  });

  it('are not restored if a reload configures them meanwhile', async () => {
    const { worker, restoreProjects } = watched('w', ids(2));
    await worker.start();
    rows.configure(['p0']);
    await pass(LEASE);
    rows.configure(ids(2));
    await pass(2 * LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
  });

  it('are restored one lease later after a lost lease', async () => {
    const { worker, database, restoreProjects } = watched('w', ids(2));
    await worker.start();
    rows.configure(['p0']);
    await pass(2 * BEAT);
    database('fails');
    await pass(2 * LEASE);
    database('none');
    await pass(LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
    await pass(2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(1);
  });

  it('are not restored while another worker has a different or an empty digest', async () => {
    const { worker, restoreProjects } = watched('w', ids(2));
    const other = watched('other', ids(1), 'other');
    await worker.start();
    await other.worker.start();
    rows.configure(['p0']);
    await pass(2 * LEASE);
    other.worker.configure(ids(1), '');
    await pass(2 * LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
    await other.worker.stop();
    await pass(LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
    await pass(2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(1);
  });

  it('are not restored by a worker that takes no share', async () => {
    const { worker, restoreProjects } = watched('w', ids(2), '');
    await worker.start();
    rows.configure(['p0']);
    await pass(3 * LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
  });

  it('are restored one lease later if the first attempt fails, while polls continue', async () => {
    const { worker, may, restoreProjects, log } = watched('w', ids(2));
    restoreProjects.mockRejectedValueOnce(new StoreError('other', 'permission denied'));
    await worker.start();
    rows.configure(['p0']);
    await pass(LEASE + 2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(1);
    expect(may()).toEqual(['p0']);
    await pass(LEASE + 2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(2);
    expect(log.of('worker.projects_restored')).toHaveLength(1);
    expect(may()).toEqual(ids(2));
  });
});

describe('stopping a worker', () => {
  it('ends the lease even if a release fails, once the database has recovered', async () => {
    const [only] = await crew(rows, 1, ids(1));
    const work = Promise.withResolvers<void>();
    only?.busy.add('p0');
    const stopped = only?.worker.stop(work.promise);
    await pass(10);
    only?.database('loses releases');
    only?.busy.delete('p0');
    await pass(BEAT);
    only?.database('none');
    await pass(1000);
    work.resolve();
    await stopped;
    expect(rows.leases.size).toBe(0);
    expect(rows.projectsOf('p0')).toEqual([]);
  });

  it('gives idle projects back at once, and keeps the lease until the given work ends', async () => {
    const [first, second] = await crew(rows, 2, ids(4));
    const [busy = ''] = first?.may() ?? [];
    first?.busy.add(busy);
    const lease = first?.worker.lease();
    const work = Promise.withResolvers<void>();
    const stopped = first?.worker.stop(work.promise);
    await pass(LEASE);
    expect(second?.may()).toEqual(ids(4).filter((id) => id !== busy));
    first?.busy.delete(busy);
    await pass(2 * BEAT);
    expect(second?.may()).toEqual(ids(4));
    expect([first?.worker.lease(), second?.worker.liveWorkers()]).toEqual([lease, 2]);
    work.resolve();
    await stopped;
    expect([...rows.leases.keys()]).toEqual(['p1']);
    expect(first?.log.of('worker.lease_lost')).toEqual([]);
  });

  it('ends the lease for good even if a beat is in progress', async () => {
    let gate: Promise<void> | undefined;
    const renew: Coordinator['renew'] = async (worker) => {
      await gate;
      return await rows.coordinator.renew(worker);
    };
    const only = workerOver(rows, 'w', ids(1), { coordinator: { ...rows.coordinator, renew } });
    await only.worker.start();
    const database = Promise.withResolvers<void>();
    gate = database.promise;
    const stopped = only.worker.stop();
    await pass(BEAT);
    database.resolve();
    await stopped;
    expect(rows.leases.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    await pass(2 * LEASE);
    expect(only.log.of('worker.lease_lost')).toEqual([]);
  });
});

describe('a worker with a failing or slow database', () => {
  it('polls nothing, and continues as before if the database recovers within the lease', async () => {
    const [only] = await crew(rows, 1, ids(2));
    only?.database('fails');
    await pass(BEAT);
    expect(only?.worker.isConnected()).toBe(false);
    expect(only?.may()).toEqual([]);
    only?.database('none');
    await pass(1000);
    expect(only?.may()).toEqual(ids(2));
    expect(only?.log.of('worker.lease_lost')).toEqual([]);
    expect(only?.log.of('worker.claimed').length).toBe(1);
  });

  it('tells that it waits for its first lease, again when the reason changes', async () => {
    let reason: 'io' | 'other' = 'io';
    const renew = () => Promise.reject(new StoreError(reason, `because of ${reason}`));
    const { worker, log } = workerOver(rows, 'w', ids(1), {
      coordinator: { ...rows.coordinator, renew },
    });
    await worker.start();
    await pass(10_000);
    reason = 'other';
    await pass(10_000);
    expect(log.of('worker.waiting')).toMatchObject([{ reason: 'io' }, { reason: 'other' }]);
    await worker.stop();
  });

  it.each(['renew', 'claim'] as const)(
    'leaves no timer if its first %s is refused',
    async (call) => {
      const refused = () => Promise.reject(new StoreError('other', 'no right'));
      const { worker } = workerOver(rows, 'w', ids(1), {
        coordinator: { ...rows.coordinator, [call]: refused },
      });
      await expect(worker.start()).rejects.toThrow('no right');
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('renews its lease while other statements are slow', async () => {
    const slow =
      <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
      async (...args: Args) => {
        await systemClock.sleep(LEASE / 5);
        return await call(...args);
      };
    const { claim, release, list, load } = rows.coordinator;
    const coordinator = {
      ...rows.coordinator,
      claim: slow(claim),
      release: slow(release),
      list: slow(list),
      load: slow(load),
    };
    const only = workerOver(rows, 'w', ids(3), { coordinator });
    void only.worker.start();
    await pass(60_000);
    expect(only.may()).toEqual(ids(3));
    expect(only.log.of('worker.lease_lost')).toEqual([]);
    void only.worker.stop();
    await pass(60_000);
  });
});

it('a worker shows when its lease expires', async () => {
  const [only] = await crew(rows, 1, ids(2));
  const leaseExpiresAt = only?.worker.leaseExpiresAt() ?? 0;
  expect(leaseExpiresAt - Date.now()).toBeGreaterThan(LEASE - BEAT - 1);
});

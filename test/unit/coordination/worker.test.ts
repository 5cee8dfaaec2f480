import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Coordinator, WorkerIdentity } from '../../../src/coordination/ports.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import type { WorkerOptions } from '../../../src/coordination/worker.ts';
import { BEAT, crew, ids, LEASE, pass, type sharedRows, startOver, workerOver } from './world.ts';

let rows: ReturnType<typeof sharedRows>;
beforeEach(() => {
  rows = startOver();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('project sharing', () => {
  it.each([
    [1, 10, [10]],
    [2, 10, [5, 5]],
    [3, 10, [4, 4, 2]],
    [3, 2, [1, 1, 0]],
    [2, 1200, [600, 600]],
  ])('gives each of %i workers a fair share of %i projects', async (count, projects, shares) => {
    const workers = await crew(rows, count, ids(projects));
    const owned = workers.map(({ may }) => may());
    expect(owned.map(({ length }) => length).toSorted((a, b) => b - a)).toEqual(shares);
    expect(new Set(owned.flat()).size).toBe(projects);
  });

  it('claims more projects only while one is free', async () => {
    let hasFree = true;
    const claim = vi.fn<Coordinator['claim']>(rows.coordinator.claim);
    const coordinator = {
      ...rows.coordinator,
      claim,
      beat: async (worker: WorkerIdentity) => {
        const beat = await rows.coordinator.beat(worker);
        return beat && { ...beat, hasFree };
      },
    };
    const { worker, may } = workerOver(rows, 'w', ids(4), { coordinator });
    rows.owners.set('p3', { worker: 'other', epoch: 0 });
    rows.leases.set('other', Infinity);
    await worker.start();
    expect(may()).toEqual(['p0', 'p1', 'p2']);
    expect(claim).toHaveBeenCalledTimes(1);

    hasFree = false;
    rows.leases.delete('other');
    await pass(3 * BEAT);
    expect(claim).toHaveBeenCalledTimes(1);
    hasFree = true;
    await pass(BEAT);
    expect(may()).toEqual(ids(4));
  });
});

describe('claims of many or differing projects', () => {
  it.each([
    ['that has fewer projects', ids(50), 'old'],
    ['with no projects and an empty digest', ids(0), ''],
    ['with the same projects and an empty digest', ids(100), ''],
  ])('reserve no share for a worker %s', async (_, projects, digest) => {
    const first = workerOver(rows, 'first', ids(100));
    await first.worker.start();
    const second = workerOver(rows, 'second', projects, { configDigest: () => digest });
    await second.worker.start();
    await pass(4 * BEAT);
    expect(first.may()).toEqual(ids(100));
    expect(first.worker.liveWorkers()).toBe(2);
  });

  it('ask for at most 5000 projects at a time, and still cover all 11,000', async () => {
    const claim = vi.fn<Coordinator['claim']>(rows.coordinator.claim);
    const only = workerOver(rows, 'only', ids(11_000), {
      coordinator: { ...rows.coordinator, claim },
    });
    await only.worker.start();
    expect(only.may()).toHaveLength(11_000);
    expect(Math.max(...claim.mock.calls.map(([, projects]) => projects.length))).toBe(5000);
  });

  it('reach all 100 free ones among 10,100 projects even if each request takes 3 s', async () => {
    const first = workerOver(rows, 'first', ids(10_000), { configDigest: () => 'old' });
    await first.worker.start();
    const claim: Coordinator['claim'] = async (...asked) => {
      await systemClock.sleep(3000);
      return await rows.coordinator.claim(...asked);
    };
    const second = workerOver(rows, 'second', ids(10_100), {
      configDigest: () => 'new',
      coordinator: { ...rows.coordinator, claim },
    });
    void second.worker.start();
    await pass(60_000);
    expect(second.may()).toHaveLength(100);
  });

  it('do not let the lease expire while many requests are slow', async () => {
    const claim: Coordinator['claim'] = async (...asked) => {
      const taken = await rows.coordinator.claim(...asked);
      await systemClock.sleep(400);
      return taken;
    };
    const only = workerOver(rows, 'only', ids(20_000), {
      coordinator: { ...rows.coordinator, claim },
    });
    void only.worker.start();
    await pass(60_000);
    expect(only.may()).toHaveLength(20_000);
    expect(only.log.of('worker.lease_lost')).toEqual([]);
  });
});

describe('a released project', () => {
  it('is not polled any more, and gets no other owner before its running poll has ended', async () => {
    const projects = ids(2);
    const first = workerOver(rows, 'first', projects);
    await first.worker.start();
    const poll = Promise.withResolvers<void>();
    for (const project of projects) first.polls.set(project, poll.promise);
    const second = workerOver(rows, 'second', projects);
    await second.worker.start();
    await pass(2 * BEAT);
    expect(first.may()).toEqual(['p0']);
    expect(second.may()).toEqual([]);
    expect(first.epochs.has('p1')).toBe(true);
    expect(first.worker.owns('p1')).toBe(true);
    poll.resolve();
    first.polls.clear();
    await pass(BEAT);
    expect(second.may()).toEqual(['p1']);
    expect(first.epochs.has('p1')).toBe(false);
  });

  it('stays owned if the release fails, and is released later', async () => {
    const first = workerOver(rows, 'first', ids(2));
    await first.worker.start();
    const second = workerOver(rows, 'second', ids(2));
    await second.worker.start();
    first.database('releases fail');
    await pass(BEAT);
    expect(second.may()).toEqual([]);
    first.database('none');
    await pass(2 * BEAT);
    expect([first.may(), second.may()]).toEqual([['p0'], ['p1']]);
    expect(first.log.of('worker.lease_lost')).toEqual([]);
  });
});

describe('a lost lease', () => {
  it('drops all projects when it expires, even if the database does not respond', async () => {
    const [only] = await crew(rows, 1, ids(2));
    only?.database('hangs');
    await pass(LEASE);
    expect(only?.log.of('worker.lease_lost')).toMatchObject([{ projects: 2, owned: 0 }]);
    expect(only?.changed.at(-1)).toEqual({ taken: [], dropped: ['p0', 'p1'] });
    expect(only?.epochs.size).toBe(0);
  });

  it('is followed by one with another number, after a time without a lease', async () => {
    const [only] = await crew(rows, 1, ids(1));
    const before = only?.worker.lease();
    expect(before).toBeDefined();
    only?.database('fails');
    await pass(LEASE);
    expect(only?.worker.lease()).toBeUndefined();
    only?.database('none');
    await pass(1000);
    expect(only?.worker.lease()).toBeDefined();
    expect(only?.worker.lease()).not.toBe(before);
  });

  it('is detected before the next poll of a process that was suspended, even if no timer fires', async () => {
    const [only] = await crew(rows, 1, ids(2));
    // Time passes, and no timer fires.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now() + LEASE);
    expect(only?.worker.mayPoll('p0')).toBe(false);
    expect(only?.log.of('worker.lease_lost').length).toBe(1);
  });

  it('is replaced by a new one when the database reports it as expired', async () => {
    const [only] = await crew(rows, 1, ids(2));
    const epochs = [...(only?.epochs.values() ?? [])];
    rows.leases.clear();
    await pass(BEAT);
    expect(only?.log.of('worker.lease_lost').length).toBe(1);
    expect(only?.may()).toEqual(['p0', 'p1']);
    for (const epoch of only?.epochs.values() ?? []) expect(epochs).not.toContain(epoch);
  });

  it('is replaced by a new one within 1 s after the database recovers', async () => {
    const [only] = await crew(rows, 1, ids(2));
    only?.database('fails');
    await pass(10 * LEASE);
    expect(only?.worker.isConnected()).toBe(false);
    only?.database('none');
    await pass(1000);
    expect(only?.worker.isConnected()).toBe(true);
    expect(only?.may()).toEqual(['p0', 'p1']);
  });

  it('is not restored by a heartbeat response that is read too late', async () => {
    const beat = async (worker: WorkerIdentity) => {
      const answer = await rows.coordinator.beat(worker);
      // The process is stopped meanwhile.
      vi.spyOn(performance, 'now').mockReturnValue(performance.now() + LEASE);
      return answer;
    };
    const only = workerOver(rows, 'w', ids(2), { coordinator: { ...rows.coordinator, beat } });
    await only.worker.start();
    await pass(BEAT);
    expect(only.log.of('worker.lease_lost').length).toBe(1);
    expect(only.may()).toEqual([]);
  });
});

describe('workers with different configurations', () => {
  const told = ({ log }: ReturnType<typeof workerOver>) => log.of('worker.config_differs');

  it('are reported once per difference, after 5 minutes', async () => {
    let digest = 'old';
    const first = workerOver(rows, 'first', ids(2), { configDigest: () => 'new' });
    const second = workerOver(rows, 'second', ids(2), { configDigest: () => digest });
    await first.worker.start();
    await second.worker.start();
    await pass(5 * 60_000 - BEAT);
    expect(told(first)).toEqual([]);
    await pass(10 * 60_000);
    expect(told(first)).toMatchObject([{ worker: 'first', others: ['second'] }]);
    expect(told(second)).toMatchObject([{ worker: 'second', others: ['first'] }]);

    digest = 'new';
    await pass(10 * 60_000);
    digest = 'newer';
    await pass(10 * 60_000);
    expect(told(first).length).toBe(2);
  });

  it('are not reported if one of them has an empty digest', async () => {
    const first = workerOver(rows, 'first', ids(2));
    const second = workerOver(rows, 'second', ids(1), { configDigest: () => '' });
    await first.worker.start();
    await second.worker.start();
    await pass(10 * 60_000);
    expect([...told(first), ...told(second)]).toEqual([]);
  });

  it('are not reported if they agree within 5 minutes', async () => {
    let digest = 'old';
    const first = workerOver(rows, 'first', ids(2), { configDigest: () => 'new' });
    const second = workerOver(rows, 'second', ids(2), { configDigest: () => digest });
    await first.worker.start();
    await second.worker.start();
    await pass(4 * 60_000);
    digest = 'new';
    await pass(10 * 60_000);
    expect([...told(first), ...told(second)]).toEqual([]);
  });
});

describe('projects that the database has lost', () => {
  /** Creates a worker with a mock of `restoreProjects`. */
  function watched(id: string, projects: readonly string[], digest = () => 'd') {
    const restoreProjects = vi.fn<WorkerOptions['restoreProjects']>(rows.restoreProjects);
    const one = workerOver(rows, id, projects, { restoreProjects, configDigest: digest });
    return { ...one, restoreProjects };
  }

  it('are restored once, by one worker, after one lease duration', async () => {
    const one = watched('one', ids(2));
    const other = watched('other', ids(2));
    await one.worker.start();
    await other.worker.start();
    rows.store(7);
    await pass(LEASE);
    expect(one.restoreProjects).not.toHaveBeenCalled();
    expect(other.restoreProjects).not.toHaveBeenCalled();
    await pass(2 * BEAT);
    const told = [
      ...one.log.of('worker.projects_restored'),
      ...other.log.of('worker.projects_restored'),
    ];
    expect(told).toMatchObject([{ projects: 2 }]);
    await pass(4 * LEASE);
    expect(
      one.restoreProjects.mock.calls.length + other.restoreProjects.mock.calls.length,
    ).toBeLessThan(3);
    expect(one.may().length + other.may().length).toBe(2);
  });

  it('are restored one lease duration later if other projects are configured meanwhile', async () => {
    const { worker, restoreProjects } = watched('w', ids(2));
    await worker.start();
    rows.store(7);
    await pass(LEASE);
    rows.store(9);
    await pass(LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
    await pass(2 * BEAT);
    expect(restoreProjects.mock.calls).toEqual([[ids(2), 9]]);
  });

  it('are restored one lease duration later after a lost lease', async () => {
    const { worker, database, restoreProjects } = watched('w', ids(2));
    await worker.start();
    rows.store(7);
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
    let digest = 'other';
    const { worker, restoreProjects } = watched('w', ids(2));
    const other = watched('other', ids(1), () => digest);
    await worker.start();
    await other.worker.start();
    rows.store(7);
    await pass(2 * LEASE);
    digest = '';
    await pass(2 * LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
    await other.worker.stop();
    await pass(LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
    await pass(2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(1);
  });

  it('are not restored by a worker that takes no share', async () => {
    const { worker, restoreProjects } = watched('w', ids(2), () => '');
    await worker.start();
    rows.store(7);
    await pass(3 * LEASE);
    expect(restoreProjects).not.toHaveBeenCalled();
  });

  it('are restored one lease duration later if the first attempt fails, while polls continue', async () => {
    const { worker, may, restoreProjects, log } = watched('w', ids(2));
    restoreProjects.mockRejectedValueOnce(new StoreError('other', 'permission denied'));
    await worker.start();
    rows.store(7);
    await pass(LEASE + 2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(1);
    expect(may()).toEqual(ids(2));
    await pass(LEASE + 2 * BEAT);
    expect(restoreProjects).toHaveBeenCalledTimes(2);
    expect(log.of('worker.projects_restored')).toHaveLength(1);
  });
});

describe('stopping a worker', () => {
  it('ends the lease even if a release fails, once the database has recovered', async () => {
    const [only] = await crew(rows, 1, ids(1));
    const [poll, work] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    only?.polls.set('p0', poll.promise);
    const stopped = only?.worker.stop(work.promise);
    await pass(10);
    only?.database('releases fail');
    poll.resolve();
    await pass(300);
    only?.database('none');
    await pass(1000);
    work.resolve();
    await stopped;
    expect(rows.leases.size).toBe(0);
  });

  it('releases the projects at once, and keeps the lease until the given work ends', async () => {
    const [first, second] = await crew(rows, 2, ids(2));
    const lease = first?.worker.lease();
    const work = Promise.withResolvers<void>();
    const stopped = first?.worker.stop(work.promise);
    await pass(3 * LEASE);
    expect(second?.may()).toEqual(['p0', 'p1']);
    expect([first?.worker.lease(), second?.worker.liveWorkers()]).toEqual([lease, 2]);
    expect(first?.log.of('worker.claimed').length).toBe(1);
    work.resolve();
    await stopped;
    expect([...rows.leases.keys()]).toEqual(['p1']);
    expect(first?.log.of('worker.lease_lost')).toEqual([]);
  });

  it('ends the lease for good even if a heartbeat is in progress', async () => {
    const projects = ids(1);
    let gate: Promise<void> | undefined;
    const beat = async (worker: WorkerIdentity) => {
      await gate;
      return await rows.coordinator.beat(worker);
    };
    const only = workerOver(rows, 'w', projects, { coordinator: { ...rows.coordinator, beat } });
    await only.worker.start();
    const poll = Promise.withResolvers<void>();
    only.polls.set('p0', poll.promise);
    const stopped = only.worker.stop();
    const database = Promise.withResolvers<void>();
    gate = database.promise;
    await pass(BEAT);
    poll.resolve();
    await pass(BEAT / 2);
    expect(rows.owners.size).toBe(0);
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
    expect(only?.may()).toEqual(['p0', 'p1']);
    expect(only?.log.of('worker.lease_lost')).toEqual([]);
    expect(only?.log.of('worker.claimed').length).toBe(1);
  });

  it('fails to start without onWaiting', async () => {
    const { worker, database } = workerOver(rows, 'w', ids(1));
    database('fails');
    await expect(worker.start()).rejects.toThrow('no connection');
  });

  it('calls onWaiting again when the reason changes', async () => {
    let reason: 'io' | 'other' = 'io';
    const join = () => Promise.reject(new StoreError(reason, `because of ${reason}`));
    const { worker } = workerOver(rows, 'w', ids(1), {
      coordinator: { ...rows.coordinator, join },
    });
    const onWaiting = vi.fn<(error: StoreError) => void>();
    await worker.start(onWaiting);
    await pass(10_000);
    reason = 'other';
    await pass(10_000);
    expect(onWaiting.mock.calls.map(([error]) => error.reason)).toEqual(['io', 'other']);
    await worker.stop();
  });

  it('leaves no timer if its first claim is rejected', async () => {
    const claim = () => Promise.reject(new StoreError('other', 'no right'));
    const { worker } = workerOver(rows, 'w', ids(1), {
      coordinator: { ...rows.coordinator, claim },
    });
    await expect(worker.start(() => {})).rejects.toThrow('no right');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('joins only once if its configuration changes during the start', async () => {
    const join = vi.fn<Coordinator['join']>(async (identity) => {
      await systemClock.sleep(1000);
      return await rows.coordinator.join(identity);
    });
    const { worker, may } = workerOver(rows, 'w', ids(2), {
      coordinator: { ...rows.coordinator, join },
    });
    const started = worker.start();
    await pass(500);
    worker.configure(ids(2));
    await pass(500);
    await started;
    expect(join).toHaveBeenCalledTimes(1);
    expect(may()).toEqual(ids(2));
    await worker.stop();
  });

  it.each(['other', 'corrupt'] as const)(
    'fails to start even with onWaiting if the database refuses (%s)',
    async (reason) => {
      const join = () => Promise.reject(new StoreError(reason, 'refused'));
      const { worker } = workerOver(rows, 'w', ids(1), {
        coordinator: { ...rows.coordinator, join },
      });
      await expect(worker.start(() => {})).rejects.toThrow('refused');
      expect(vi.getTimerCount()).toBe(0);
    },
  );
});

describe('thousands of projects of a lost lease', () => {
  it('are released in batches of 1000 before the next lease begins', async () => {
    const calls: string[] = [];
    const only = workerOver(rows, 'w', ids(3500), {
      coordinator: {
        ...rows.coordinator,
        join: async (identity) => {
          calls.push(`join with ${rows.projectsOf('w').length}`);
          return await rows.coordinator.join(identity);
        },
        release: async (worker, projects) => {
          calls.push(`release ${projects.length}`);
          await rows.coordinator.release(worker, projects);
        },
      },
    });
    await only.worker.start();
    await pass(BEAT);
    rows.leases.delete('w');
    await pass(BEAT);
    const parts = ['release 1000', 'release 1000', 'release 1000'];
    expect(calls).toEqual(['join with 0', ...parts, 'join with 500']);
  });

  it('do not delay a stop beyond the lease duration', async () => {
    let isSlow = false;
    const only = workerOver(rows, 'w', ids(20_000), {
      coordinator: {
        ...rows.coordinator,
        release: async (...release) => {
          if (isSlow) await systemClock.sleep(4000);
          await rows.coordinator.release(...release);
        },
        join: async (identity) => {
          if (isSlow) throw new StoreError('io', 'no answer');
          return await rows.coordinator.join(identity);
        },
      },
    });
    await only.worker.start();
    await pass(2 * LEASE);
    rows.leases.delete('w');
    isSlow = true;
    await pass(BEAT);
    const started = performance.now();
    const stopped = only.worker.stop().then(() => performance.now() - started);
    await pass(60_000);
    expect(await stopped).toBeLessThan(LEASE);
  });
});

it('a worker sends one heartbeat after many dropped projects in a row', async () => {
  const beat = vi.fn<Coordinator['beat']>(rows.coordinator.beat);
  const only = workerOver(rows, 'w', ids(100), { coordinator: { ...rows.coordinator, beat } });
  await only.worker.start();
  for (const project of ids(100)) {
    only.worker.drop(project);
    await pass(1);
  }
  await pass(BEAT / 2);
  expect(beat).toHaveBeenCalledTimes(1);
  expect(only.may()).toEqual(ids(100));
  only.worker.drop('p0');
  await only.worker.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('a worker releases thousands of projects in batches of 1000, including those of a lost lease', async () => {
  const release = vi.fn<Coordinator['release']>(rows.coordinator.release);
  let isDown = false;
  const beat: Coordinator['beat'] = async (...asked) => {
    if (isDown) throw new StoreError('io', 'no answer');
    return await rows.coordinator.beat(...asked);
  };
  const coordinator = { ...rows.coordinator, release, beat };
  const only = workerOver(rows, 'w', ids(2500), { coordinator });
  await only.worker.start();
  only.worker.configure(ids(2400).slice(0, 200));
  await pass(BEAT);
  const sizes = () => release.mock.calls.map(([, projects]) => projects.length);
  expect(sizes()).toEqual([1000, 1000, 300]);
  expect(only.log.of('worker.released').at(-1)).toMatchObject({ projects: 300, owned: 200 });
  expect(rows.owners.size).toBe(200);

  only.worker.configure(ids(2500));
  await pass(BEAT);
  expect(only.may()).toHaveLength(2500);
  release.mockClear();
  isDown = true;
  await pass(LEASE - BEAT);
  // The release resumes with the part that failed.
  release.mockRejectedValueOnce(new StoreError('io', 'no answer'));
  await pass(2 * BEAT);
  expect(only.log.of('worker.lease_lost')).toMatchObject([{ projects: 2500 }]);
  expect(sizes()).toEqual([1000, 1000, 1000]);
  expect(only.may()).toHaveLength(2500);
  await only.worker.stop();
});

it('a worker shows when its lease expires', async () => {
  const [only] = await crew(rows, 1, ids(2));
  const leaseExpiresAt = only?.worker.leaseExpiresAt() ?? 0;
  expect(leaseExpiresAt - Date.now()).toBeGreaterThan(LEASE - BEAT - 1);
});

it('a worker owns its projects without the database until its lease expires', async () => {
  const [only] = await crew(rows, 1, ids(2));
  const owned = () => ids(2).filter((id) => only?.worker.owns(id));
  only?.database('hangs');
  await pass(LEASE / 2 + BEAT);
  expect(only?.may()).toEqual([]);
  expect(owned()).toEqual(ids(2));
  await pass(LEASE);
  expect(owned()).toEqual([]);
});

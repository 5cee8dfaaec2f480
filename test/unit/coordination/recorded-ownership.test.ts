import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Coordinator } from '../../../src/coordination/ports.ts';
import { BEAT, crew, ids, pass, type sharedRows, startOver, workerOver } from './world.ts';

let rows: ReturnType<typeof sharedRows>;
beforeEach(() => {
  rows = startOver();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a project that only the database records as owned by a worker', () => {
  it('is claimed again after the response to its claim was lost', async () => {
    const only = workerOver(rows, 'w', []);
    await only.worker.start();
    only.worker.configure(ids(2));
    only.database('claims break');
    await pass(10);
    expect(rows.owners.size).toBe(2);
    expect(only.may()).toEqual([]);
    only.database('none');
    await pass(2 * BEAT);
    expect(['p0', 'p1'].map((project) => only.worker.mayPoll(project))).toEqual([true, true]);
  });

  it('is claimed again under a new epoch after its commit was refused', async () => {
    const [only] = await crew(rows, 1, ids(2));
    const epoch = only?.epochs.get('p0') ?? 0;
    only?.worker.drop('p0');
    expect(only?.changed.at(-1)).toEqual({ taken: [], dropped: ['p0'] });
    await pass(BEAT);
    expect(only?.may()).toEqual(['p0', 'p1']);
    expect(only?.epochs.get('p0')).toBeGreaterThan(epoch);
  });
});

describe('a project that only the worker records as its own', () => {
  it('is dropped and claimed again after a late join request has cleared all owners', async () => {
    const [only] = await crew(rows, 1, ids(3));
    const epochs = new Map(only?.epochs);
    rows.owners.clear();
    await pass(BEAT);
    expect(only?.changed.slice(-2)).toEqual([
      { taken: [], dropped: ids(3) },
      { taken: ids(3), dropped: [] },
    ]);
    for (const [project, epoch] of epochs) {
      expect(rows.owners.get(project)?.epoch).toBeGreaterThan(epoch);
      expect(only?.epochs.get(project)).toBe(rows.owners.get(project)?.epoch);
    }
    expect(only?.log.of('worker.lease_lost')).toEqual([]);
  });

  it('is dropped, and no other one, if another worker owns it by now', async () => {
    const [first] = await crew(rows, 1, ids(3));
    rows.owners.set('p1', { worker: 'somebody', epoch: 1000 });
    rows.leases.set('somebody', Infinity);
    await pass(BEAT);
    expect(first?.changed.at(-1)).toEqual({ taken: [], dropped: ['p1'] });
    expect(first?.may()).toEqual(['p0', 'p2']);
    expect(first?.epochs.has('p1')).toBe(false);
  });
});

describe('the comparison of owned projects with the database', () => {
  it('resolves a mismatch on both sides within one heartbeat, even if the counts are equal', async () => {
    const only = workerOver(rows, 'w', ids(4), { shareSize: () => 3 });
    await only.worker.start();
    rows.owners.delete('p1');
    rows.owners.set('p3', { worker: 'w', epoch: 1000 });
    await pass(BEAT);
    expect(only.may().length).toBe(3);
    expect(only.may()).toEqual(rows.projectsOf('w').toSorted());
    expect(only.log.of('worker.released')).toMatchObject([{ projects: 1, owned: 2 }]);
  });

  it('replaces an ownership if the database records an earlier one of the same project', async () => {
    const only = workerOver(rows, 'w', ids(2));
    await only.worker.start();
    rows.owners.set('p1', { worker: 'w', epoch: 1 });
    await pass(BEAT);
    expect(only.changed.slice(1)).toEqual([
      { taken: [], dropped: ['p1'] },
      { taken: ['p1'], dropped: [] },
    ]);
    expect(only.epochs.get('p1')).toBe(rows.owners.get('p1')?.epoch);
  });

  it('keeps an ownership that the database records under a later epoch', async () => {
    const only = workerOver(rows, 'w', ids(2));
    await only.worker.start();
    rows.owners.set('p1', { worker: 'w', epoch: 1000 });
    await pass(3 * BEAT);
    expect(only.changed.slice(1)).toEqual([]);
    expect(only.may()).toEqual(ids(2));
  });

  it('claims a project again that it was giving back when the database lost its claim', async () => {
    let share = 2;
    const only = workerOver(rows, 'w', ids(2), { shareSize: () => share });
    await only.worker.start();
    const poll = Promise.withResolvers<void>();
    only.polls.set('p1', poll.promise);
    share = 1;
    await pass(BEAT);
    expect(only.may()).toEqual(['p0']);
    rows.owners.clear();
    share = 2;
    await pass(BEAT);
    expect(only.may()).toEqual(ids(2));
    // The end of the poll releases nothing: it belongs to the lost claim.
    poll.resolve();
    await pass(BEAT / 4);
    expect(rows.projectsOf('w')).toEqual(ids(2));
    expect(only.may()).toEqual(ids(2));
    expect(only.epochs).toEqual(
      new Map([...rows.owners].map(([project, { epoch }]) => [project, epoch])),
    );
    await only.worker.stop();
  });

  it('finds a project that only the database records while another one is given back', async () => {
    const all = ids(4);
    const only = workerOver(rows, 'w', all.slice(0, 3));
    await only.worker.start();
    const poll = Promise.withResolvers<void>();
    only.polls.set('p0', poll.promise);
    rows.owners.delete('p0');
    only.database('claims break');
    only.worker.configure(all.slice(1));
    await pass(10);
    expect(rows.owners.get('p3')?.worker).toBe('w');
    only.database('none');
    await pass(2 * BEAT);
    expect(only.worker.mayPoll('p3')).toBe(true);
    poll.resolve();
    await pass(BEAT);
    await only.worker.stop();
  });

  it('reads no project names while the number of ownerships and the sum of their epochs agree', async () => {
    const ownedBy = vi.fn<Coordinator['ownedBy']>(rows.coordinator.ownedBy);
    const { worker } = workerOver(rows, 'w', ids(3), {
      coordinator: { ...rows.coordinator, ownedBy },
    });
    await worker.start();
    await pass(10 * BEAT);
    expect(ownedBy).not.toHaveBeenCalled();
    await worker.stop();
  });

  it('does not expect the database to record a removed project that it still polls', async () => {
    const ownedBy = vi.fn<Coordinator['ownedBy']>(rows.coordinator.ownedBy);
    const only = workerOver(rows, 'w', ids(3), {
      coordinator: { ...rows.coordinator, ownedBy },
    });
    await only.worker.start();
    const poll = Promise.withResolvers<void>();
    only.polls.set('p0', poll.promise);
    // A project loses its owner when it is removed.
    rows.owners.delete('p0');
    only.worker.configure(ids(3).slice(1));
    await pass(2 * BEAT);
    expect(only.worker.owns('p0')).toBe(true);
    expect(ownedBy).not.toHaveBeenCalled();
    poll.resolve();
    await pass(BEAT);
    await only.worker.stop();
  });

  it('does not release a project again that is already being released', async () => {
    const release = vi.fn<Coordinator['release']>(rows.coordinator.release);
    const only = workerOver(rows, 'w', ids(3), {
      coordinator: { ...rows.coordinator, release },
    });
    await only.worker.start();
    const poll = Promise.withResolvers<void>();
    only.polls.set('p0', poll.promise);
    only.worker.configure(ids(3).slice(1));
    await pass(BEAT);
    rows.owners.delete('p1');
    await pass(BEAT);
    expect(release).not.toHaveBeenCalled();
    expect(rows.projectsOf('w')).toContain('p0');
    poll.resolve();
    await pass(BEAT);
    expect(release.mock.calls).toEqual([['w', ['p0']]]);
  });

  it('releases only projects that the worker does not own, in batches of 1000', async () => {
    const release = vi.fn<Coordinator['release']>(rows.coordinator.release);
    const only = workerOver(rows, 'w', ids(5000), {
      shareSize: () => 10,
      coordinator: { ...rows.coordinator, release },
    });
    await only.worker.start();
    for (const project of ids(5000).slice(2500))
      rows.owners.set(project, { worker: 'w', epoch: 1 });
    await pass(BEAT);
    expect(release.mock.calls.map(([, projects]) => projects.length)).toEqual([1000, 1000, 500]);
    expect(rows.projectsOf('w')).toEqual(ids(10));
  });
});

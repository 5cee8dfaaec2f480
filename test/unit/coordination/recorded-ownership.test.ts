import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Coordinator } from '../../../src/coordination/ports.ts';
import { BEAT, ids, pass, type sharedRows, startOver, workerOver } from './world.ts';

/** Another worker with the same configuration, which claims nothing. */
const other = (id: string) => ({ id, version: '1', configDigest: 'd' });

let rows: ReturnType<typeof sharedRows>;
beforeEach(() => {
  rows = startOver();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the comparison of owned projects with the database', () => {
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
    const only = workerOver(rows, 'w', ids(2));
    await only.worker.start();
    const poll = Promise.withResolvers<void>();
    only.polls.set('p1', poll.promise);
    await rows.coordinator.join(other('other'));
    await pass(BEAT);
    expect(only.may()).toEqual(['p0']);
    rows.owners.clear();
    await rows.coordinator.leave('other');
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
      coordinator: { ...rows.coordinator, release },
    });
    for (let n = 1; n < 500; n += 1) await rows.coordinator.join(other(`other-${n}`));
    await only.worker.start();
    for (const project of ids(5000).slice(2500))
      rows.owners.set(project, { worker: 'w', epoch: 1 });
    await pass(BEAT);
    expect(release.mock.calls.map(([, projects]) => projects.length)).toEqual([1000, 1000, 500]);
    expect(rows.projectsOf('w')).toEqual(ids(10));
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import type { AddedDurations } from '../../../src/domain/limits.ts';
import type { StoreReader } from '../../../src/monitor/ports/store.ts';
import { changesOf, type Harness, recordOf, UP } from './harness.ts';

export function describeDurations(h: Harness): void {
  describe('durations', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    const RUNNING: AddedDurations = { status: 'RUNNING', day: 20_000, bucket: 30, count: 1 };
    const changed = () => changesOf({ records: [recordOf('x', 'RUNNING')] });

    /** Commits a poll of a project that changes a prompt and has these durations. */
    async function add(project: string, ...durations: readonly AddedDurations[]) {
      const { token } = await h.store.loadKnown(project, ['prompt']);
      const listings = new Map([['prompt', changed()] as const]);
      const poll = { project, at: 1000, health: UP, token, listings, durations };
      return await h.store.commitPoll(poll);
    }

    /** Returns counts as `day/bucket: count`. */
    async function counted(
      project = 'p',
      status: AddedDurations['status'] = 'RUNNING',
      { firstDay = 0, reader = h.store }: { firstDay?: number; reader?: StoreReader } = {},
    ) {
      const [found, ...others] = await reader.durations([{ project, status }], firstDay);
      expect(others).toEqual([]);
      expect(found).toMatchObject({ project, status });
      const sorted = (found?.counts ?? []).toSorted(
        (one, other) => one.day - other.day || one.bucket - other.bucket,
      );
      return sorted.map(({ day, bucket, count }) => `${day}/${bucket}: ${count}`);
    }

    it('are summed over polls by status, day and bucket', async () => {
      await add('p', RUNNING, { ...RUNNING, bucket: 31, count: 4 });
      await add('p', { ...RUNNING, count: 2 }, { ...RUNNING, day: 20_001 });
      await add('p', { ...RUNNING, status: 'PENDING', bucket: 0 });
      expect(await counted()).toEqual(['20000/30: 3', '20000/31: 4', '20001/30: 1']);
      expect(await counted('p', 'PENDING')).toEqual(['20000/0: 1']);
      expect(await counted('q')).toEqual([]);
      await h.reopen();
      expect(await counted()).toEqual(['20000/30: 3', '20000/31: 4', '20001/30: 1']);
    });

    it('are not counted for a rejected commit', async () => {
      const { token } = await h.store.loadKnown('p', []);
      await add('p', RUNNING);
      const listings = new Map([['prompt', changed()] as const]);
      const poll = { project: 'p', at: 1000, health: UP, listings, durations: [RUNNING] };
      expect(await h.store.commitPoll({ ...poll, token })).toBeUndefined();
      expect(await counted()).toEqual(['20000/30: 1']);
    });

    it('are counted once for a large poll', async () => {
      const records = Array.from({ length: 2500 }, (_, index) => recordOf(`x${index}`, 'RUNNING'));
      const { token } = await h.store.loadKnown('p', ['prompt', 'dataset']);
      const listings = new Map([
        ['prompt', changesOf({ records })] as const,
        ['dataset', changesOf({ records })] as const,
      ]);
      const durations = [{ ...RUNNING, count: 7 }];
      const poll = { project: 'p', at: 1000, health: UP, token, listings, durations };
      await h.store.commitPoll(poll);
      expect(await counted()).toEqual(['20000/30: 7']);
    });

    it('are returned from a first day on, in the order of the requested states', async () => {
      await add('p', { ...RUNNING, day: 19_999 }, RUNNING);
      await add('q', { ...RUNNING, status: 'PENDING', count: 9 });
      expect(await counted('p', 'RUNNING', { firstDay: 20_000 })).toEqual(['20000/30: 1']);
      const states = [
        { project: 'nobody', status: 'RUNNING' },
        { project: 'q', status: 'PENDING' },
        { project: 'p', status: 'PENDING' },
        { project: 'p', status: 'RUNNING' },
      ] as const;
      const found = await h.store.durations(states, 0);
      expect(found.map(({ project, status, counts }) => [project, status, counts.length])).toEqual([
        ['nobody', 'RUNNING', 0],
        ['q', 'PENDING', 1],
        ['p', 'PENDING', 0],
        ['p', 'RUNNING', 2],
      ]);
      expect(await h.store.durations([], 0)).toEqual([]);
    });

    it('are the same through a StoreReader', async () => {
      await add('p', RUNNING);
      await using reader = await h.openReader().then((each) => {
        return { each, [Symbol.asyncDispose]: () => each.close() };
      });
      expect(await counted('p', 'RUNNING', { reader: reader.each })).toEqual(['20000/30: 1']);
    });

    it('are deleted for days before the retention and for a removed project', async () => {
      await add('p', { ...RUNNING, day: 19_999 }, RUNNING, { ...RUNNING, status: 'PENDING' });
      await add('q', RUNNING);
      await h.store.prune({ before: 0, firstDay: 20_000 });
      expect(await counted()).toEqual(['20000/30: 1']);
      expect(await counted('p', 'PENDING')).toEqual(['20000/30: 1']);
      await h.store.configureProjects(['q'], 2000);
      await h.store.prune({ before: 3000, firstDay: 0 });
      expect(await counted()).toEqual([]);
      expect(await counted('q')).toEqual(['20000/30: 1']);
      await h.store.configureProjects(['p', 'q'], 4000);
      expect(await counted()).toEqual([]);
    });

    it('have the end of the last polling gap (steadySince) stored with the poll health', async () => {
      const health = { ...UP, steadySince: 700 };
      const { token } = await h.store.loadKnown('p', []);
      const poll = { project: 'p', at: 1000, health, token };
      await h.store.commitPoll({ ...poll, listings: new Map() });
      expect(await h.store.loadHealth('p')).toEqual(health);
      await h.store.commitPoll({
        ...poll,
        health: { ...UP, steadySince: 800 },
        listings: new Map([['prompt', changed()]]),
      });
      expect(await h.store.loadHealth('p')).toEqual({ ...UP, steadySince: 800 });
      const { projects } = await h.store.snapshot();
      expect(projects.map(({ health: { steadySince } }) => steadySince)).toEqual([800, undefined]);
    });
  });
}

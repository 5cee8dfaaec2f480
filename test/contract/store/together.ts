import { beforeEach, describe, expect, it } from 'vitest';
import { StoreError } from '../../../src/monitor/errors.ts';
import { changesOf, moveOf, recordOf, type Harness } from './harness.ts';

const MANY = 2501;

export function describeTogether(h: Harness): void {
  describe('polls committed concurrently', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q', 'r'], 500));

    it('are all stored', async () => {
      const commits = ['p', 'q', 'r'].map((id) => h.see(id, { x: 'RUNNING' }, 1000));
      expect(await Promise.all(commits)).toEqual([[], [], []]);
      for (const id of ['p', 'q', 'r']) expect((await h.known(id))?.records.size).toBe(1);
    });

    it('return the transitions of their own project with the stored ids', async () => {
      await Promise.all(['p', 'q'].map((id) => h.see(id, { x: 'RUNNING' }, 1000)));
      const move = changesOf({ transitions: [moveOf('x', 'FAILED')] });
      const [p, q] = await Promise.all(['p', 'q'].map((id) => h.commit(id, { prompt: move })));
      expect([p?.length, q?.length]).toEqual([1, 1]);
      const rows = await h.store.transitions({});
      expect(new Map(rows.map((row) => [row.project, row.transitionId]))).toEqual(
        new Map([
          ['p', p?.[0]?.transitionId],
          ['q', q?.[0]?.transitionId],
        ]),
      );
    });

    it('succeed if another one fails', async () => {
      const baseline = changesOf({ baseline: true, records: [recordOf('x', 'RUNNING')] });
      const [p, q] = [await h.store.loadKnown('p', []), await h.store.loadKnown('q', [])];
      h.log.clear();
      const outcomes = await Promise.allSettled([
        h.commit('p', { prompt: baseline }, { from: p }),
        h.commit('unknown', { prompt: baseline }, { from: p }),
        h.commit('q', { prompt: baseline }, { from: q }),
      ]);
      expect(outcomes).toEqual([
        { status: 'fulfilled', value: [] },
        { status: 'rejected', reason: expect.any(StoreError) },
        { status: 'fulfilled', value: [] },
      ]);
      for (const id of ['p', 'q']) expect((await h.known(id))?.records.size).toBe(1);
      expect(h.log.of('store.commit_failed')).toHaveLength(1);
      expect(h.log.of('store.committed').length).toBeGreaterThan(0);
    });

    it('succeed if another one is outdated', async () => {
      const from = await h.store.loadKnown('p', []);
      await h.see('p', { x: 'RUNNING' }, 1000);
      const late = changesOf({ records: [recordOf('x', 'FAILED')] });
      const baseline = changesOf({ baseline: true, records: [recordOf('x', 'RUNNING')] });
      const outcomes = await Promise.all([
        h.commit('p', { prompt: late }, { from }),
        h.commit('q', { prompt: baseline }),
      ]);
      expect(outcomes).toEqual([undefined, []]);
      expect((await h.known('p'))?.records.get('x')?.status).toBe('RUNNING');
      expect((await h.known('q'))?.records.size).toBe(1);
    });
  });

  describe('a poll of many prompts', () => {
    const ids = Array.from({ length: MANY }, (_, index) => `x${index}`);
    const records = ids.map((id) => recordOf(id, 'RUNNING'));
    const baseline = changesOf({ baseline: true, records });

    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('is stored and loaded completely', async () => {
      await h.commit('p', { prompt: baseline, dataset: baseline });
      const { listings } = await h.store.loadKnown('p', ['prompt', 'dataset']);
      const all = { baselined: true, records: new Map(records.map((one) => [one.id, one])) };
      expect(listings.get('prompt')).toEqual(all);
      expect(listings.get('dataset')).toEqual(all);
    });

    it('assigns increasing ids to its transitions in their order', async () => {
      await h.commit('p', { prompt: baseline });
      h.log.clear();
      const transitions = ids.map((id) => moveOf(id, 'FAILED'));
      const gone = [recordOf('x0', 'RUNNING', { gone: true })];
      const changes = changesOf({ records: gone, transitions, gone }, records);
      const committed = await h.commit('p', { prompt: changes });
      expect(committed?.map(({ id }) => id)).toEqual(ids);
      const rows = await h.store.transitions({});
      expect(rows.map(({ transitionId }) => transitionId).toReversed()).toEqual(
        committed?.map(({ transitionId }) => transitionId),
      );
      const { transitions: totals, goneTotal } = await h.listing('p');
      expect(totals).toEqual([['RUNNING', 'FAILED', MANY]]);
      expect(goneTotal).toBe(1);
      expect(h.log.of('store.committed')).toHaveLength(1);
    });

    it('is never partly visible to a reader', async () => {
      const reader = await h.openReader();
      const committing = h.commit('p', { prompt: baseline });
      const commit = { isDone: false };
      void committing.then(() => (commit.isDone = true));
      const seen = new Set<number>();
      const look = async () => {
        seen.add((await h.listing('p')).counts.get('RUNNING') ?? 0);
        seen.add((await reader.statuses({ project: 'p' })).length);
      };
      while (!commit.isDone) await look();
      await look();
      await reader.close();
      // If the first read is slow, no read returns 0.
      expect([...seen].filter((count) => count !== 0)).toEqual([MANY]);
    });

    it('changes nothing if outdated, while another commit succeeds', async () => {
      const from = await h.store.loadKnown('p', ['prompt']);
      await h.see('p', { x0: 'PENDING' }, 1000);
      const outcomes = await Promise.all([
        h.commit('p', { prompt: baseline }, { from }),
        h.see('q', { x: 'RUNNING' }, 1000),
      ]);
      expect(outcomes).toEqual([undefined, []]);
      expect((await h.known('p'))?.records.size).toBe(1);
    });

    it('is stored completely before the store closes', async () => {
      const from = await h.store.loadKnown('p', ['prompt']);
      const committing = h.commit('p', { prompt: baseline }, { from });
      await h.store.close();
      await committing;
      await h.reopen();
      expect((await h.known('p'))?.records.size).toBe(MANY);
    });
  });
}

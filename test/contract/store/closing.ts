import { describe, expect, it } from 'vitest';
import { StoreError } from '../../../src/monitor/errors.ts';
import { UP, type Harness } from './harness.ts';

export function describeClosing(h: Harness): void {
  describe('closing', () => {
    it('can be done twice', async () => {
      await h.store.close();
      await expect(h.store.close()).resolves.toBeUndefined();
    });

    it('makes later reads and commits reject with a StoreError', async () => {
      await h.store.configureProjects(['p'], 500);
      await h.store.close();
      const attempts = [
        h.store.snapshot(),
        h.store.projects(),
        h.store.statuses({}),
        h.store.loadHealth('p'),
        h.store.pendingFailures({ limitPerProject: 1 }),
        h.commit('p', {}),
      ];
      for (const attempt of attempts) {
        const error: unknown = await attempt.catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(StoreError);
        expect(error).toHaveProperty('message', 'the store is closed');
      }
    });

    it('ends a running prune early and without an error', async () => {
      await h.store.configureProjects(['p'], 500);
      await h.see('p', {}, 1000);
      const many = Array.from({ length: 5001 }, (_, index) => [`x${index}`, 'RUNNING']);
      await h.see('p', Object.fromEntries(many), 1000);
      const pruning = h.store.prune({ before: 2000, firstDay: 0 });
      await h.store.close();
      await pruning;
      expect(h.log.of('store.commit_failed')).toEqual([]);
      await h.reopen();
      expect((await h.store.transitions({})).length).toBeGreaterThan(0);
    });

    it('stores the health of a poll without changes', async () => {
      await h.store.configureProjects(['p'], 500);
      await h.commit('p', {});
      await h.store.close();
      await h.reopen();
      expect(await h.store.loadHealth('p')).toEqual(UP);
    });

    it('leaves the size of the store readable', async () => {
      await h.store.configureProjects(['p'], 500);
      await h.store.close();
      expect((await h.store.size()).database).toBeGreaterThan(0);
    });
  });
}

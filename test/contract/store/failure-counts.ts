import { beforeEach, describe, expect, it } from 'vitest';
import type { Harness } from './harness.ts';

export function describeFailureCounts(h: Harness): void {
  describe('failure counts', () => {
    const LIMIT = 100;
    const count = async (since: number, project?: string, limitPerProject = LIMIT) => {
      const counts = await h.store.failureCounts({ project, since, limitPerProject });
      return Object.fromEntries(counts.map((each) => [each.project, each.count]));
    };

    beforeEach(async () => {
      await h.store.configureProjects(['p', 'q', 'none'], 500);
      await h.fail('p', ['a', 'b', 'c'], 1000);
      await h.fail('p', ['d'], 3000);
      await h.fail('q', ['e'], 2000);
      await h.see('none', { f: 'RUNNING' }, 1000);
    });

    it('count moves to FAILED from a given time on and no other moves', async () => {
      await h.see('p', { a: 'RUNNING', b: 'FAILED', c: 'FAILED', d: 'COMPLETED' }, 4000);
      expect(await count(1000)).toEqual({ p: 4, q: 1 });
      expect(await count(1001)).toEqual({ p: 1, q: 1 });
      expect(await count(3001)).toEqual({});
      await h.see('p', { a: 'FAILED' }, 5000);
      expect(await count(3001)).toEqual({ p: 1 });
    });

    it('include all failures of one instant, up to the limit per project', async () => {
      const ids = Array.from({ length: 30 }, (_, n) => `many ${n}`);
      await h.fail('p', ids, 6000);
      expect(await count(6000)).toEqual({ p: 30 });
      expect(await count(1000, undefined, 10)).toEqual({ p: 10, q: 1 });
    });

    it('leave out datasets', async () => {
      await h.see('none', { f: 'RUNNING' }, 1000, 'dataset');
      await h.see('none', { f: 'FAILED' }, 1000, 'dataset');
      expect(await count(0, 'none')).toEqual({});
    });

    it('cover a requested project, or all configured ones by default', async () => {
      expect(await count(0, 'q')).toEqual({ q: 1 });
      expect(await count(0, 'nobody')).toEqual({});
      await h.store.configureProjects(['q'], 7000);
      expect(await count(0)).toEqual({ q: 1 });
      expect(await count(0, 'p')).toEqual({ p: 4 });
    });

    it('are the same through a StoreReader', async () => {
      const reader = await h.openReader();
      const counts = await reader.failureCounts({ since: 0, limitPerProject: LIMIT });
      await reader.close();
      expect(counts.toSorted((a, b) => b.count - a.count)).toEqual([
        { project: 'p', count: 4 },
        { project: 'q', count: 1 },
      ]);
    });
  });
}

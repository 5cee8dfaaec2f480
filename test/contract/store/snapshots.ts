import { beforeEach, describe, expect, it } from 'vitest';
import { changesOf, recordOf, UP, type Harness } from './harness.ts';
import { withCause } from '../../support/failures.ts';

export function describeSnapshots(h: Harness): void {
  describe('the snapshot', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('counts records that are not gone by status, and the missing among them', async () => {
      const records = [
        recordOf('a', 'RUNNING'),
        recordOf('b', 'RUNNING', { missing: 1 }),
        recordOf('c', 'FAILED', { missing: 2 }),
        recordOf('d', 'FAILED', { missing: 3, gone: true }),
        recordOf('e', 'UNKNOWN', { statusRaw: 'ODD' }),
      ];
      await h.commit('p', { prompt: changesOf({ baseline: true, records }) });
      const { counts, missing } = await h.listing('p');
      expect(Object.fromEntries(counts)).toEqual({
        PENDING: 0,
        RUNNING: 2,
        COMPLETED: 0,
        FAILED: 1,
        UNKNOWN: 1,
      });
      expect(missing).toBe(2);
    });

    it('reflects every commit, even after an earlier read', async () => {
      await h.see('p', { x: 'PENDING' }, 1000);
      expect((await h.listing('p')).counts.get('PENDING')).toBe(1);
      await h.see('p', { x: 'RUNNING' }, 1100);
      expect((await h.listing('p')).counts.get('PENDING')).toBe(0);
      expect((await h.listing('p')).counts.get('RUNNING')).toBe(1);
      expect((await h.listing('q')).counts.get('RUNNING')).toBe(0);
    });

    it('can be restricted to one configured project', async () => {
      await h.see('p', { x: 'PENDING' }, 1000);
      await h.see('q', { y: 'RUNNING' }, 1100);
      const { projects } = await h.store.snapshot();
      expect((await h.store.snapshot('q')).projects).toEqual([projects[1]]);
      expect((await h.store.snapshot('nobody')).projects).toEqual([]);
      await h.store.configureProjects(['p'], 1200);
      expect((await h.store.snapshot('q')).projects).toEqual([]);
    });

    it('reflects the health of a poll without changes', async () => {
      await h.see('p', { x: 'PENDING' }, 1000);
      await h.store.snapshot();
      const health = { ...UP, up: false, consecutiveFailures: 1, reason: 'tls' as const };
      await h.store.commitPoll({ project: 'p', at: 1, health, token: '', listings: new Map() });
      expect((await h.store.snapshot()).projects[0]?.health).toEqual(health);
    });

    it('totals the records that became gone, including those that return', async () => {
      await h.see('p', { x: 'RUNNING', y: 'RUNNING' }, 1000);
      await h.see('p', { y: 'RUNNING' }, 1100);
      expect((await h.listing('p')).missing).toBe(1);
      await h.see('p', { y: 'RUNNING' }, 1200);
      expect(await h.listing('p')).toMatchObject({ missing: 0, goneTotal: 1 });
      await h.see('p', { x: 'RUNNING' }, 1300);
      await h.see('p', { x: 'RUNNING' }, 1400);
      expect(await h.listing('p')).toMatchObject({ missing: 0, goneTotal: 2 });
    });

    it('returns since when the longest waiting record waits, ignoring gone ones', async () => {
      const records = [
        recordOf('a', 'PENDING', { since: 30 }),
        recordOf('b', 'PENDING', { since: 20 }),
        recordOf('c', 'PENDING', { since: 10, missing: 3, gone: true }),
        recordOf('d', 'FAILED', { since: 5 }),
      ];
      await h.commit('p', { prompt: changesOf({ baseline: true, records }) });
      expect((await h.listing('p')).oldest).toEqual(new Map([['PENDING', 20]]));
    });

    it('returns since when the next one waits, once the longest waiting record moves', async () => {
      await h.see('p', { a: 'RUNNING' }, 1000);
      await h.see('p', { a: 'RUNNING', b: 'RUNNING' }, 2000);
      await h.see('p', { a: 'RUNNING', b: 'RUNNING', c: 'RUNNING', d: 'PENDING' }, 3000);

      await h.see('p', { a: 'COMPLETED', b: 'RUNNING', c: 'RUNNING', d: 'PENDING' }, 4000);
      expect((await h.listing('p')).oldest).toEqual(
        new Map([
          ['PENDING', 3000],
          ['RUNNING', 2000],
        ]),
      );
      // Both that have waited longest move, and another one begins to wait.
      await h.see('p', { a: 'COMPLETED', b: 'FAILED', c: 'FAILED', d: 'RUNNING' }, 5000);
      expect((await h.listing('p')).oldest).toEqual(new Map([['RUNNING', 5000]]));
    });

    it('totals the transitions of each status pair', async () => {
      await h.see('p', {}, 1000);
      await h.see('p', { x: 'RUNNING', y: 'RUNNING' }, 1100);
      await h.see('p', { x: 'FAILED', y: 'RUNNING' }, 1200);
      await h.see('p', { x: 'FAILED', y: 'FAILED', z: 'RUNNING' }, 1300);
      expect((await h.listing('p')).transitions.toSorted(([a], [b]) => a.localeCompare(b))).toEqual(
        [
          ['NEW', 'RUNNING', 3],
          ['RUNNING', 'FAILED', 2],
        ],
      );
      expect((await h.listing('p', 'dataset')).transitions).toEqual([]);
    });

    it('returns the time of the newest move to FAILED for prompts and for datasets', async () => {
      await h.see('p', { x: 'FAILED' }, 1000);
      expect((await h.listing('p')).lastFailureAt).toBeUndefined();
      await h.see('p', { x: 'RUNNING' }, 1100);
      await h.see('p', { x: 'FAILED' }, 1200);
      await h.see('p', { x: 'RUNNING' }, 1300);
      await h.see('p', { x: 'RUNNING' }, 1300, 'dataset');
      await h.see('p', { x: 'FAILED' }, 1400, 'dataset');
      expect((await h.listing('p')).lastFailureAt).toBe(1200);
      expect((await h.listing('p', 'dataset')).lastFailureAt).toBe(1400);
    });

    it('treats the last committed move to FAILED as the newest even if the clock was set back', async () => {
      await h.see('p', { x: 'RUNNING' }, 9000);
      await h.see('p', { x: 'FAILED' }, 9000);
      await h.see('p', { x: 'RUNNING' }, 2000);
      await h.see('p', { x: 'FAILED' }, 2000);
      expect((await h.listing('p')).lastFailureAt).toBe(2000);
    });

    it('counts the pending failures of every project, including removed ones', async () => {
      await h.fail('p', ['x', 'y'], 1000);
      const [first] = await h.fail('q', ['z'], 2000);
      await h.store.configureProjects(['q'], 3000);
      expect((await h.store.snapshot()).backlog).toEqual({ count: 3, oldestAt: 1000 });
      for (const failure of await h.store.pendingFailures({ limitPerProject: 9 })) {
        if (failure.transitionId !== first) {
          await h.store.settleFailure(failure, withCause({ reason: 'not_found' }), 4000);
        }
      }
      expect((await h.store.snapshot()).backlog).toEqual({ count: 1, oldestAt: 2000 });
    });

    it('is the same through a StoreReader', async () => {
      await h.see('p', { x: 'RUNNING', y: 'PENDING' }, 1000);
      await h.see('p', { x: 'FAILED' }, 1100);
      const reader = await h.openReader();
      expect(await reader.snapshot()).toEqual(await h.store.snapshot());
      await h.see('p', { x: 'RUNNING', y: 'PENDING' }, 1200);
      expect(await reader.snapshot()).toEqual(await h.store.snapshot());
      expect((await h.listing('p', 'prompt', reader)).counts.get('RUNNING')).toBe(1);
      for (const failure of await h.store.pendingFailures({ limitPerProject: 9 })) {
        const errorInfo = { error_id: 'E1', error_msg: 'broken' };
        await h.store.settleFailure(
          failure,
          withCause({ errorInfo, errorMsgTruncated: false }),
          1300,
        );
      }
      expect(await reader.snapshot()).toEqual(await h.store.snapshot());
      expect((await h.listing('p')).errors).toMatchObject([{ label: 'E1', count: 1 }]);
      await h.store.configureProjects(['q'], 1400);
      await h.store.configureProjects(['p', 'q'], 1500);
      expect(await reader.snapshot()).toEqual(await h.store.snapshot());
      await h.reopen();
      expect(await reader.snapshot()).toEqual(await h.store.snapshot());
      await reader.close();
    });
  });
}

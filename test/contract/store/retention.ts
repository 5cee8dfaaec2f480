import { beforeEach, describe, expect, it } from 'vitest';
import { KINDS } from '../../../src/domain/status.ts';
import { withCause, settle } from '../../support/failures.ts';
import { type Harness } from './harness.ts';

export function describeRetention(h: Harness): void {
  describe('retention', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('deletes transitions older than the cutoff together with their settled failures', async () => {
      const [old = 0] = await h.fail('p', ['x'], 1000);
      await h.see('p', { x: 'COMPLETED' }, 2000);
      await settle(h.store, old, { reason: 'not_found' }, 1500);
      await h.store.prune({ before: 2000, firstDay: 0 });
      expect(await h.store.transitions({})).toMatchObject([{ to: 'COMPLETED', at: 2000 }]);
      expect(await h.store.failures({})).toEqual([]);
    });

    it('keeps a transition with a pending failure until the failure is settled', async () => {
      const [old = 0] = await h.fail('p', ['x'], 1000);
      await h.store.prune({ before: 9000, firstDay: 0 });
      expect(await h.pendingIds()).toEqual(['x']);
      expect(await h.store.failures({})).toHaveLength(1);
      await settle(h.store, old, { reason: 'unavailable' }, 9500);
      await h.store.prune({ before: 9000, firstDay: 0 });
      expect(await h.store.transitions({})).toEqual([]);
    });

    it('keeps the counts, totals and times of a configured project unchanged', async () => {
      const [old = 0] = await h.fail('p', ['x', 'y'], 1000);
      await h.see('p', { x: 'RUNNING' }, 1100);
      await h.see('p', { x: 'RUNNING' }, 1200);
      for (const failure of await h.store.pendingFailures({ limitPerProject: 9 })) {
        await h.store.settleFailure(failure, withCause({ reason: 'not_found' }), 1500);
      }
      const before = [await h.store.snapshot(), (await h.store.loadKnown('p', KINDS)).listings];
      expect(await h.listing('p')).toMatchObject({ goneTotal: 1, lastFailureAt: 1000 });
      await h.store.prune({ before: 9_999_999, firstDay: 0 });
      expect(await h.store.transitions({})).toEqual([]);
      expect([await h.store.snapshot(), (await h.store.loadKnown('p', KINDS)).listings]).toEqual(
        before,
      );
      await h.reopen();
      expect([await h.store.snapshot(), (await h.store.loadKnown('p', KINDS)).listings]).toEqual(
        before,
      );
      const next = await h.see('p', { x: 'COMPLETED' }, 2000);
      expect(next?.[0]?.transitionId).toBeGreaterThan(old + 1);
    });

    it('never uses a transition id twice', async () => {
      await h.see('p', { x: 'PENDING' }, 1000);
      const first = await h.see('p', { x: 'RUNNING' }, 1000);
      await h.store.prune({ before: 5000, firstDay: 0 });
      await h.reopen();
      const second = await h.see('p', { x: 'COMPLETED' }, 6000);
      expect(second?.[0]?.transitionId).toBeGreaterThan(first?.[0]?.transitionId ?? 0);
    });

    it('deletes a project removed before the cutoff, which is new when configured again', async () => {
      const [old = 0] = await h.fail('p', ['x'], 1000);
      await settle(h.store, old, { reason: 'not_found' }, 1500);
      await h.store.snapshot();
      await h.store.configureProjects(['q'], 2000);
      await h.store.prune({ before: 2000, firstDay: 0 });
      expect(await h.store.projects()).toEqual(['p', 'q']);
      await h.store.prune({ before: 2001, firstDay: 0 });
      expect(await h.store.projects()).toEqual(['q']);
      await h.store.configureProjects(['p', 'q'], 3000);
      expect((await h.store.snapshot()).projects[0]?.configuredAt).toBe(3000);
      expect(await h.listing('p')).toMatchObject({ transitions: [], lastFailureAt: undefined });
      expect(await h.known('p')).toEqual({ baselined: false, records: new Map() });
    });

    it('keeps a removed project with a pending failure', async () => {
      await h.fail('p', ['x'], 1000);
      await h.store.configureProjects(['q'], 2000);
      await h.store.prune({ before: 9000, firstDay: 0 });
      expect(await h.pendingIds()).toEqual(['x']);
      expect(await h.store.projects()).toEqual(['p', 'q']);
    });
  });
}

export function describeLongRetention(h: Harness): void {
  describe('retention of many rows', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('deletes more rows than fit into one transaction while other polls are committed', async () => {
      const statuses = (status: string) =>
        Object.fromEntries(Array.from({ length: 5001 }, (_, index) => [`x${index}`, status]));
      for (const status of ['PENDING', 'RUNNING', 'COMPLETED', 'PENDING', 'RUNNING', 'COMPLETED']) {
        await h.see('p', statuses(status), 1000);
      }
      await h.see('q', { y: 'PENDING' }, 1000);
      const state = { isDone: false };
      const pruning = h.store.prune({ before: 3000, firstDay: 0 }).finally(() => {
        state.isDone = true;
      });
      let polls = 0;
      for (; !state.isDone; polls += 1) {
        await h.see('q', { y: polls % 2 === 0 ? 'RUNNING' : 'PENDING' }, 4000 + polls);
      }
      await pruning;
      // In one transaction there would be seven polls in SQLite, one with each statement. PostgreSQL has no such order.
      const isSqlite = (await h.store.size()).wal !== undefined;
      expect(polls).toBeGreaterThan(isSqlite ? 8 : 0);
      expect(await h.store.transitions({ project: 'p' })).toEqual([]);
    });

    it('treats a project that is configured again during a prune as new', async () => {
      const statuses = Object.fromEntries(
        Array.from({ length: 5001 }, (_, index) => [`x${index}`, 'PENDING']),
      );
      await h.see('p', statuses, 1000);
      await h.store.configureProjects(['q'], 2000);
      const pruning = h.store.prune({ before: 3000, firstDay: 0 });
      await h.store.configureProjects(['p', 'q'], 4000);
      await h.see('p', { x1: 'FAILED' }, 5000);
      await pruning;
      expect([...((await h.known('p'))?.records.keys() ?? [])]).toEqual(['x1']);
      expect(await h.store.transitions({ project: 'p' })).toEqual([]);
    });
  });
}

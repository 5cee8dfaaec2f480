import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { causeOf } from '../../../src/domain/cause.ts';
import { withCause, postpone, settle } from '../../support/failures.ts';
import { UNTRIED, type Harness } from './harness.ts';

export function describeFailures(h: Harness): void {
  describe('failures', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('are pending and due at once when a prompt moves to FAILED', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      const transitions = await h.see('p', { x: 'FAILED' }, 1100);
      expect(await h.store.pendingFailures({ dueAt: 0, limitPerProject: 10 })).toMatchObject([
        {
          transitionId: transitions?.[0]?.transitionId,
          project: 'p',
          promptId: 'x',
          promptName: 'name of x',
          removedAt: undefined,
          tries: UNTRIED,
        },
      ]);
    });

    it('are not created by the baseline or by a dataset', async () => {
      await h.see('p', { x: 'FAILED' }, 1000);
      await h.see('p', { d: 'RUNNING' }, 1000, 'dataset');
      await h.see('p', { d: 'FAILED' }, 1100, 'dataset');
      expect(await h.pendingIds()).toEqual([]);
      expect(await h.store.failures({})).toEqual([]);
    });

    it('are created once for each time a prompt fails', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      await h.see('p', { x: 'FAILED' }, 1100);
      await h.see('p', { x: 'RUNNING' }, 1200);
      await h.see('p', { x: 'FAILED' }, 1300);
      expect(await h.pendingIds()).toEqual(['x', 'x']);
    });

    it('are returned oldest first, up to the limit per project', async () => {
      await h.fail('p', ['p1', 'p2', 'p3']);
      await h.fail('q', ['q1', 'q2']);
      await h.fail('p', ['p1', 'p2', 'p3', 'p4']);
      expect(await h.pendingIds({ limitPerProject: 2 })).toEqual(['p1', 'p2', 'q1', 'q2']);
      expect(await h.pendingIds({ limitPerProject: Number.MAX_SAFE_INTEGER })).toHaveLength(9);
    });

    it('are limited to the requested projects', async () => {
      await h.fail('p', ['x']);
      await h.fail('q', ['y']);
      expect(await h.pendingIds({ projects: ['q', 'nobody'] })).toEqual(['y']);
      expect(await h.pendingIds({ projects: [] })).toEqual([]);
    });

    it.each([
      ['falls due', { lastAt: 1000, nextAt: 2000 }, 2000, true],
      ['is not due yet', { lastAt: 1000, nextAt: 2000 }, 1999, false],
      ['has a last try in the future', { lastAt: 1000, nextAt: 2000 }, 999, true],
      ['was never tried', { lastAt: undefined, nextAt: 0 }, 0, true],
    ])('are filtered by due time: one that %s, with %j at %i', async (_name, tries, dueAt, due) => {
      const [transitionId = 0] = await h.fail('p', ['x']);
      await postpone(h.store, transitionId, { ...UNTRIED, ...tries });
      expect(await h.pendingIds({ dueAt })).toEqual(due ? ['x'] : []);
      expect(await h.pendingIds()).toEqual(['x']);
    });

    it('are returned when due even if older ones that wait would fill the limit', async () => {
      const [first = 0] = await h.fail('p', ['x', 'y']);
      await postpone(h.store, first, { ...UNTRIED, lastAt: 1000, nextAt: 5000 });
      expect(await h.pendingIds({ dueAt: 2000, limitPerProject: 1 })).toEqual(['y']);
    });

    it('store the tries with which they are postponed', async () => {
      const [transitionId = 0] = await h.fail('p', ['x']);
      const tries = { count: 3, useless: 2, firstAt: 100, lastAt: 200, nextAt: 300 };
      await postpone(h.store, transitionId, tries);
      const [pending] = await h.store.pendingFailures({ limitPerProject: 1 });
      expect(pending?.tries).toEqual(tries);
    });

    it.each([
      [{ errorInfo: { error_id: 'E1', error_msg: 'm\u0001\u{1F600}' }, errorMsgTruncated: true }],
      [{ errorInfo: { error_id: null, error_msg: '' }, errorMsgTruncated: false }],
      [{ errorInfo: { error_id: null, error_msg: null }, errorMsgTruncated: false }],
      [{ reason: 'project_removed' as const }],
    ])('are settled with %j', async (settlement) => {
      const [transitionId = 0] = await h.fail('p', ['x'], 1000);
      await settle(h.store, transitionId, settlement, 1500);
      expect(await h.pendingIds()).toEqual([]);
      const cause = causeOf('errorInfo' in settlement ? settlement.errorInfo : undefined).id;
      expect(await h.store.failures({})).toEqual([
        {
          transitionId,
          at: 1000,
          project: 'p',
          promptId: 'x',
          promptName: 'name of x',
          settlement,
          cause,
        },
      ]);
    });

    it('ignore another settlement or a postponement once settled', async () => {
      await h.fail('p', ['x'], 1000);
      const [failure] = await h.store.pendingFailures({ limitPerProject: 1 });
      if (failure === undefined) throw new Error('none is pending');
      await h.store.settleFailure(failure, withCause({ reason: 'not_found' }), 1500);
      await h.store.settleFailure(failure, withCause({ reason: 'unavailable' }), 1600);
      await h.store.postponeFailure(failure, UNTRIED);
      expect((await h.store.failures({}))[0]?.settlement).toEqual({ reason: 'not_found' });
      expect(await h.pendingIds()).toEqual([]);
    });

    it('ignore the settlement or postponement of one that does not exist', async () => {
      const deleted = { transitionId: 4711, token: undefined };
      await h.store.settleFailure(deleted, withCause({ reason: 'not_found' }), 1500);
      await h.store.postponeFailure(deleted, UNTRIED);
      expect(await h.store.failures({})).toEqual([]);
    });

    it('ignore a settlement or postponement with another token', async () => {
      const [transitionId = 0] = await h.fail('p', ['x'], 1000);
      const other = { transitionId, token: randomUUID() };
      await h.store.settleFailure(other, withCause({ reason: 'not_found' }), 1500);
      await h.store.postponeFailure(other, { ...UNTRIED, count: 1 });
      expect((await h.store.failures({}))[0]?.settlement).toBeUndefined();
      expect(await h.store.pendingFailures({ limitPerProject: 1 })).toMatchObject([
        { transitionId, tries: UNTRIED },
      ]);
      expect((await h.listing('p')).errors).toEqual([]);
    });

    it('of a removed project include the time of its removal', async () => {
      await h.fail('p', ['x']);
      await h.store.configureProjects(['q'], 3000);
      expect(await h.store.pendingFailures({ limitPerProject: 1 })).toMatchObject([
        { project: 'p', removedAt: 3000 },
      ]);
      await h.store.configureProjects(['p', 'q'], 4000);
      expect(await h.store.pendingFailures({ limitPerProject: 1 })).toMatchObject([
        { project: 'p', removedAt: undefined },
      ]);
    });
  });
}

import { beforeEach, describe, expect, it } from 'vitest';
import { withCause, settle } from '../../support/failures.ts';
import { HARD_TEXTS, type Harness } from './harness.ts';

const START = { transition: 0, settlement: 0, finish: 0 };

export function describeEvents(h: Harness): void {
  describe('events', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('are empty in a new store and end at the start position', async () => {
      expect(await h.store.events(START, 10)).toEqual({
        transitions: [],
        settled: [],
        finishes: [],
        end: START,
      });
    });

    it('are the rows of transitions and settled failures, oldest first', async () => {
      await h.fail('p', HARD_TEXTS);
      await h.see('q', { d: 'RUNNING' }, 1100, 'dataset');
      await h.see('q', { d: 'NONE' }, 1200, 'dataset');
      const ids = (await h.store.failures({})).map(({ transitionId }) => transitionId);
      for (const id of ids) await settle(h.store, id, { reason: 'not_found' }, 1500);

      const { transitions, settled, end } = await h.store.events(START, 100);

      expect(transitions).toEqual((await h.store.transitions({})).toReversed());
      const failures = await h.store.failures({});
      expect(settled).toEqual(failures.map((row, index) => ({ ...row, settlementId: index + 1 })));
      expect(end).toEqual({
        transition: transitions.length,
        settlement: settled.length,
        finish: 0,
      });
    });

    it('order failures by settlement even if the clock is set back', async () => {
      const [first = 0, second = 0, third = 0] = await h.fail('p', ['x', 'y', 'z']);
      await settle(h.store, second, { reason: 'not_found' }, 3000);
      await settle(h.store, third, { reason: 'not_found' }, 2000);
      const again = { transitionId: second, token: undefined };
      await h.store.settleFailure(again, withCause({ reason: 'unavailable' }), 4000);
      await h.reopen();
      await settle(h.store, first, { reason: 'not_found' }, 1000);

      const { settled, end } = await h.store.events(START, 100);

      expect(settled.map(({ settlementId, promptId }) => [settlementId, promptId])).toEqual([
        [1, 'y'],
        [2, 'z'],
        [3, 'x'],
      ]);
      expect(end).toEqual({ transition: 3, settlement: 3, finish: 0 });
    });

    it('start after a given position and stop at the limit', async () => {
      const ids = await h.fail('p', ['a', 'b', 'c', 'd']);
      for (const id of ids) await settle(h.store, id, { reason: 'not_found' }, 1500);

      const { transitions, settled } = await h.store.events(
        { transition: 1, settlement: 2, finish: 0 },
        2,
      );

      expect(transitions.map(({ id }) => id)).toEqual(['b', 'c']);
      expect(settled.map(({ promptId }) => promptId)).toEqual(['c', 'd']);
    });

    it('are deleted by retention, and their numbers are not reused', async () => {
      const [old = 0] = await h.fail('p', ['x'], 1000);
      await settle(h.store, old, { reason: 'not_found' }, 1500);
      await h.store.prune({ before: 5000, firstDay: 0 });
      await h.reopen();
      const end = { transition: 1, settlement: 1, finish: 0 };
      expect(await h.store.events(START, 10)).toEqual({
        transitions: [],
        settled: [],
        finishes: [],
        end,
      });

      const [next = 0] = await h.fail('p', ['x'], 6000);
      await settle(h.store, next, { reason: 'not_found' }, 6500);

      const { transitions, settled } = await h.store.events(end, 10);
      expect(transitions.map(({ transitionId }) => transitionId)).toEqual([2, next]);
      expect(settled).toMatchObject([{ settlementId: 2, transitionId: next }]);
    });

    it('are the same through a StoreReader', async () => {
      await h.fail('p', ['x']);
      const reader = await h.openReader();
      expect(await reader.events(START, 10)).toEqual(await h.store.events(START, 10));
      await reader.close();
    });
  });
}

import { beforeEach, describe, expect, it } from 'vitest';
import type { Committed, FinishRow } from '../../../src/monitor/ports/store.ts';
import { type Items, pollItems } from '../../support/experiments.ts';
import { changesOf, HARD_TEXTS, recordOf, type Harness } from './harness.ts';

const START = { transition: 0, settlement: 0, finish: 0 };

export function describeExperiments(h: Harness): void {
  describe('experiments', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    async function poll(items: Items, at: number, complete = true): Promise<Committed> {
      const committed = await pollItems(h.store, 'p', items, at, { complete });
      if (committed === undefined) throw new Error('refused');
      return committed;
    }

    /** Lets prompts with these experiments end, and returns the finishes of the last commit. */
    async function finish(names: readonly string[], project = 'p'): Promise<readonly FinishRow[]> {
      const all = (status: string) =>
        Object.fromEntries(names.map((name, id) => [`id-${id}`, [status, name] as const]));
      await pollItems(h.store, project, all('PENDING'), 1000);
      await pollItems(h.store, project, all('COMPLETED'), 2000);
      return (await pollItems(h.store, project, all('COMPLETED'), 3000))?.finishes ?? [];
    }

    it('that have not finished are read by project, the newest names first', async () => {
      const unfinished = async (limit: number) => {
        const rows = await h.store.unfinishedExperiments(['p', 'q', 'unknown'], limit);
        const found = Map.groupBy(rows, ({ project }) => project);
        return ['p', 'q'].map((id) => found.get(id)?.map(({ experiment }) => experiment) ?? []);
      };
      expect(await unfinished(9)).toEqual([[], []]);
      // One that runs since before the first listing, and one that had ended before it.
      const before: Items = { a: ['RUNNING', 'first'], b: ['COMPLETED', 'never moved'] };
      await poll(before, 1000);
      await pollItems(h.store, 'q', { a: ['RUNNING', 'first'] }, 1000);
      const ended: Items = { ...before, c: ['FAILED', 'ended'] };
      await poll(ended, 2000);
      await poll({ ...ended, d: ['RUNNING', 'gone'], e: ['RUNNING'] }, 2500);
      const hard = "'; DROP TABLE project; --";
      const last: Items = { ...ended, f: ['PENDING', hard] };
      await poll(last, 3000, false);
      expect(await unfinished(9)).toEqual([[hard, 'gone', 'first'], ['first']]);
      expect(await unfinished(2)).toEqual([[hard, 'gone'], ['first']]);
      const [newest] = await h.store.unfinishedExperiments(['p'], 1);
      expect(newest).toMatchObject({ project: 'p', counts: { PENDING: 1, RUNNING: 0 } });
      expect(await h.store.unfinishedExperiments(['q'], 9)).toHaveLength(1);
      for (const at of [4000, 5000, 6000]) await poll(last, at);
      expect(await unfinished(9)).toEqual([[hard, 'first'], ['first']]);
    });

    it('finish with the commit that confirms their end, once', async () => {
      await poll({ a: ['RUNNING', 'e'], b: ['PENDING', 'e'], c: ['RUNNING', 'f'] }, 1000);
      const ended = { a: ['COMPLETED', 'e'], b: ['FAILED', 'e'], c: ['RUNNING', 'f'] } as const;
      expect((await poll(ended, 2000)).finishes).toEqual([]);
      expect(await h.store.experiments({ experiment: 'e' })).toMatchObject([
        { state: 'ended', counts: { COMPLETED: 1, FAILED: 1, PENDING: 0 }, endedAt: 2000 },
      ]);
      const { transitions, finishes } = await poll(ended, 3000);
      expect(transitions).toEqual([]);
      expect(finishes).toMatchObject([
        {
          finishId: 1,
          at: 3000,
          project: 'p',
          experiment: 'e',
          counts: { COMPLETED: 1, FAILED: 1, UNKNOWN: 0 },
          startedAt: 2000,
          endedAt: 2000,
        },
      ]);
      const events = await h.store.events(START, 10);
      expect(events.finishes).toEqual(finishes);
      expect(events.end.finish).toBe(1);
      expect(await h.store.experiments({})).toMatchObject([
        { experiment: 'e', state: 'finished', finishedAt: 3000, movedAt: 2000 },
        { experiment: 'f', state: 'running', counts: { RUNNING: 1 }, movedAt: undefined },
      ]);
      expect((await poll(ended, 4000)).finishes).toEqual([]);
    });

    it('finish again once they were reopened, and their numbers grow', async () => {
      await finish(['e']);
      await h.reopen();
      await poll({ 'id-0': ['RUNNING', 'e'] }, 4000);
      await poll({ 'id-0': ['FAILED', 'e'] }, 5000);
      const { finishes } = await poll({ 'id-0': ['FAILED', 'e'] }, 6000);
      const again = { finishId: 2, at: 6000, startedAt: 4000, endedAt: 5000 };
      expect(finishes).toMatchObject([again]);
      const events = await h.store.events({ ...START, finish: 1 }, 10);
      expect(events.finishes).toEqual(finishes);
    });

    it('that can finish are known, also after a restart', async () => {
      const isFinishing = () => ['p', 'q'].map((project) => h.store.isFinishing(project));
      expect(isFinishing()).toEqual([false, false]);
      await poll({ a: ['RUNNING', 'e'] }, 1000);
      expect(isFinishing()).toEqual([false, false]);
      await poll({ a: ['COMPLETED', 'e'] }, 2000);
      expect(isFinishing()).toEqual([true, false]);
      await h.reopen();
      expect(isFinishing()).toEqual([true, false]);
      expect(h.store.isIdle('p')).toBe(false);
      await poll({ a: ['COMPLETED', 'e'] }, 2500, false);
      expect(isFinishing()).toEqual([true, false]);
      expect((await poll({ a: ['COMPLETED', 'e'] }, 3000)).finishes).toHaveLength(1);
      expect(isFinishing()).toEqual([false, false]);
      expect(h.store.isIdle('p')).toBe(true);
    });

    it('do not finish by a commit that is refused', async () => {
      await poll({ a: ['RUNNING', 'e'] }, 1000);
      const ended = { a: ['COMPLETED', 'e'] } as const;
      await poll(ended, 2000);
      const from = await h.store.loadKnown('p', ['prompt']);
      await poll({ ...ended, b: ['RUNNING', 'e'] }, 3000);
      expect(await pollItems(h.store, 'p', ended, 4000, { from })).toBeUndefined();
      expect((await h.store.events(START, 10)).finishes).toEqual([]);
      expect(await h.store.experiments({})).toMatchObject([{ state: 'running' }]);
    });

    it('of a project are its own, whatever their names are', async () => {
      const p = await finish(HARD_TEXTS);
      const q = await finish(HARD_TEXTS.slice(0, 2), 'q');
      expect(p.map(({ experiment }) => experiment).toSorted()).toEqual(HARD_TEXTS.toSorted());
      expect(q.map(({ project, experiment }) => [project, experiment])).toEqual(
        HARD_TEXTS.slice(0, 2).map((text) => ['q', text]),
      );
      const { finishes } = await h.store.events(START, 100);
      expect(finishes).toEqual([...p, ...q]);
      const rows = await h.store.experiments({ project: 'q' });
      expect(rows.map(({ experiment }) => experiment).toSorted()).toEqual(
        HARD_TEXTS.slice(0, 2).toSorted(),
      );
    });

    it('have only prompts', async () => {
      await pollItems(h.store, 'p', { d: ['COMPLETED', 'e'] }, 1000, { kind: 'dataset' });
      expect(await h.store.experiments({})).toEqual([]);
    });

    it('that finished before the cutoff are deleted, and their numbers are not used again', async () => {
      await finish(['e']);
      await h.store.prune({ before: 3001, firstDay: 0 });
      await h.reopen();
      const { finishes, end } = await h.store.events(START, 10);
      expect([finishes, end.finish]).toEqual([[], 1]);
      expect(await h.store.experiments({})).toMatchObject([{ state: 'finished', movedAt: 2000 }]);
      expect(await finish(['e'])).toMatchObject([{ finishId: 2 }]);
      await h.store.prune({ before: 3000, firstDay: 0 });
      expect((await h.store.events(START, 10)).finishes).toMatchObject([{ finishId: 2 }]);
    });

    it('without prompts are deleted once their last move is old, or if they have none', async () => {
      await poll({ a: ['RUNNING', 'of old'], b: ['RUNNING', 'of no move'] }, 1000);
      await poll({ a: ['COMPLETED', 'of old'], b: ['RUNNING', 'of no move'] }, 2000);
      await poll({ a: ['FAILED', 'of new'], b: ['RUNNING', 'e'] }, 3000);
      await poll({ a: ['FAILED', 'e'], b: ['RUNNING', 'e'] }, 4000);
      await h.store.prune({ before: 3000, firstDay: 0 });
      // An experiment that is known goes on where it was; one that is new has not moved.
      const names = ['of old', 'of no move', 'of new'];
      await poll(Object.fromEntries(names.map((name) => [name, ['FAILED', name]] as const)), 5000);
      const moved = { 'of old': 5000, 'of no move': 5000, 'of new': 3000 };
      const rows = await h.store.experiments({});
      expect(Object.fromEntries(rows.map((row) => [row.experiment, row.startedAt]))).toMatchObject(
        moved,
      );
    });

    it('keep their labels when a project has many that nothing has any more', async () => {
      const labels = { experiment: 'of gone', dataset: 'd', metric: 'm' };
      const records = [recordOf('gone', 'FAILED', { ...labels, gone: true })];
      await h.commit('p', { prompt: changesOf({ baseline: true, records }) });
      await finish(['finished']);
      await poll({ 'id-0': ['COMPLETED', 'e'] }, 3500);
      for (const name of ['old', 'new']) {
        const ids = Array.from({ length: 1100 }, (_, id) => id);
        const many = ids.map((id) => [`m-${id}`, ['RUNNING', `${name}-${id}`]] as const);
        await poll({ 'id-0': ['COMPLETED', 'e'], ...Object.fromEntries(many) }, 4000);
      }
      await h.store.prune({ before: 2500, firstDay: 0 });
      const known = (await h.known('p'))?.records;
      expect(known?.get('m-7')?.experiment).toBe('new-7');
      expect(known?.get('gone')).toMatchObject(labels);
      expect((await h.store.events(START, 9)).finishes).toMatchObject([{ experiment: 'finished' }]);
      const rows = await h.store.experiments({ experiment: 'e' });
      expect(rows).toMatchObject([{ counts: { COMPLETED: 1 } }]);
      await poll({ 'id-0': ['COMPLETED', 'old-1'] }, 5000);
      expect((await h.known('p'))?.records.get('id-0')?.experiment).toBe('old-1');
    });

    it('finish in the thousands with one commit, whatever the service names them', async () => {
      const names = Array.from({ length: 2500 }, (_, index) => `${'x'.repeat(500)}${index}`);
      const finishes = await finish(names);
      expect(finishes.map(({ experiment }) => experiment)).toEqual(names);
      expect(finishes.map(({ finishId }) => finishId)).toEqual(names.map((_, index) => index + 1));
      expect((await h.store.events(START, 3000)).finishes).toEqual(finishes);
      expect(h.store.isFinishing('p')).toBe(false);
      expect((await h.store.experiments({})).every(({ state }) => state === 'finished')).toBe(true);
    });
  });
}

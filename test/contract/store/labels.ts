import { beforeEach, describe, expect, it } from 'vitest';
import type { KnownRecord, Labels } from '../../../src/domain/record.ts';
import { pollItems } from '../../support/experiments.ts';
import { changesOf, HARD_TEXTS, recordOf, type Harness } from './harness.ts';

export function describeLabels(h: Harness): void {
  describe('labels', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    /** Polls `project`, which shows running prompts with these labels by id. */
    async function seeLabels(project: string, labels: Readonly<Record<string, Labels>>) {
      const items = Object.entries(labels).map(([id, own]) => [id, ['RUNNING', own]] as const);
      return await pollItems(h.store, project, Object.fromEntries(items), 2000);
    }

    async function labelsOf(project: string, ids?: readonly string[]) {
      const only = ids && new Map([['prompt' as const, ids]]);
      const { listings } = await h.store.loadKnown(project, ['prompt'], only);
      const records = [...(listings.get('prompt')?.records.values() ?? [])];
      return Object.fromEntries(
        records.map(({ id, experiment, dataset, metric }) => [id, { experiment, dataset, metric }]),
      );
    }

    it('are stored and loaded exactly, each on its own and of both kinds', async () => {
      const records: KnownRecord[] = [
        recordOf('all', 'RUNNING', { experiment: 'e', dataset: 'd', metric: 'm' }),
        recordOf('same', 'RUNNING', { experiment: 'x', dataset: 'x', metric: 'x' }),
        recordOf('one', 'RUNNING', { dataset: 'e' }),
        recordOf('none', 'RUNNING'),
        ...HARD_TEXTS.map((text, index) =>
          recordOf(text, 'RUNNING', { experiment: text, metric: HARD_TEXTS.at(-index) }),
        ),
        recordOf('long', 'RUNNING', { experiment: '\u{1F600}'.repeat(512) }),
      ];
      const changes = changesOf({ baseline: true, records });
      await h.commit('p', { prompt: changes, dataset: changes });
      const byId = new Map(records.map((one) => [one.id, one]));
      expect((await h.known('p'))?.records).toEqual(byId);
      expect((await h.known('p', 'dataset'))?.records).toEqual(byId);
      await h.reopen();
      expect((await h.known('p'))?.records).toEqual(byId);
    });

    it('that change are stored without a transition', async () => {
      await seeLabels('p', { x: { experiment: 'e', metric: 'm' }, y: { experiment: 'e' } });
      const before = await h.store.events({ transition: 0, settlement: 0, finish: 0 }, 10);
      const other = { x: { experiment: 'f', dataset: 'm' }, y: { experiment: 'e' } };
      expect(await seeLabels('p', other)).toMatchObject({ transitions: [] });
      expect(await labelsOf('p')).toEqual(other);
      expect(await h.store.events({ transition: 0, settlement: 0, finish: 0 }, 10)).toEqual(before);
      expect((await h.known('p'))?.records.get('x')?.since).toBe(2000);
    });

    it('are added to prompts that had none, as those of an earlier version, and taken away', async () => {
      const since = { x: 'RUNNING', y: 'RUNNING' };
      await h.see('p', since, 1000);
      const labels = { x: { experiment: 'e' }, y: { experiment: 'e', dataset: 'd' } };
      expect(await seeLabels('p', labels)).toMatchObject({ transitions: [] });
      expect(await labelsOf('p')).toEqual(labels);
      expect((await h.known('p'))?.records.get('x')?.since).toBe(1000);
      await h.see('p', since, 3000);
      expect(await labelsOf('p')).toEqual({ x: {}, y: {} });
    });

    it('of a project are its own', async () => {
      await seeLabels('p', { x: { experiment: 'shared', metric: 'of p' } });
      await seeLabels('q', { x: { experiment: 'shared', metric: 'of q' } });
      await seeLabels('p', { x: { experiment: 'shared', metric: 'other' } });
      expect(await labelsOf('p')).toEqual({ x: { experiment: 'shared', metric: 'other' } });
      await h.store.configureProjects(['q'], 3000);
      await h.store.prune({ before: 4000, firstDay: 0 });
      expect(await labelsOf('q')).toEqual({ x: { experiment: 'shared', metric: 'of q' } });
    });

    it('of a hundred thousand names are stored, and loaded with few records', async () => {
      const records = Array.from({ length: 100_000 }, (_, index) =>
        recordOf(`id-${index}`, 'RUNNING', { experiment: `e-${index}`, dataset: 'd' }),
      );
      await h.commit('p', { prompt: changesOf({ baseline: true, records }) });
      const ids = ['id-0', 'id-99999', 'id-5000', 'unknown'];
      expect(await labelsOf('p', ids)).toEqual({
        'id-0': { experiment: 'e-0', dataset: 'd' },
        'id-99999': { experiment: 'e-99999', dataset: 'd' },
        'id-5000': { experiment: 'e-5000', dataset: 'd' },
      });
      const loaded = (await h.known('p'))?.records;
      expect(records.every((one) => loaded?.get(one.id)?.experiment === one.experiment)).toBe(true);
    });
  });
}

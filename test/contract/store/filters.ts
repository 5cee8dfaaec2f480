import { beforeEach, describe, expect, it } from 'vitest';
import type { Labels } from '../../../src/domain/record.ts';
import type { RowQuery } from '../../../src/monitor/ports/store.ts';
import { pollItems } from '../../support/experiments.ts';
import { withCause } from '../../support/failures.ts';
import { HARD_TEXTS, type Harness } from './harness.ts';

export function describeFilters(h: Harness): void {
  describe('filters by label', () => {
    const P = {
      a: { experiment: 'e', dataset: 'd', metric: 'm' },
      b: { experiment: 'e', dataset: 'e' },
      c: { dataset: 'd' },
      d: {},
    };
    const Q = { z: { experiment: 'e', metric: 'of q' } };

    beforeEach(async () => {
      await h.store.configureProjects(['p', 'q'], 500);
      for (const [status, at] of [
        ['RUNNING', 1000],
        ['FAILED', 2000],
      ] as const) {
        await see('p', P, status, at);
        await see('q', Q, status, at + 10);
      }
      await h.see('p', { dataset: 'RUNNING' }, 2000, 'dataset');
      await h.see('p', { dataset: 'FAILED' }, 2100, 'dataset');
      for (const failure of await h.store.pendingFailures({ limitPerProject: 100 })) {
        const error_id = failure.promptId;
        const errorInfo = { error_id, error_msg: null };
        await h.store.settleFailure(
          failure,
          withCause({ errorInfo, errorMsgTruncated: false }),
          3000,
        );
      }
    });

    /** Polls `project`, which shows prompts with these labels by id. */
    async function see(
      project: string,
      labels: Readonly<Record<string, Labels>>,
      status: string,
      at: number,
    ): Promise<void> {
      const items = Object.entries(labels).map(([id, own]) => [id, [status, own]] as const);
      await pollItems(h.store, project, Object.fromEntries(items), at);
    }

    it.each<[query: Labels & { readonly project?: string }, ids: string]>([
      [{ project: 'p', experiment: 'e' }, 'a b'],
      [{ experiment: 'e' }, 'a b z'],
      [{ project: 'p', experiment: '' }, 'c d'],
      [{ experiment: '', dataset: 'd' }, 'c'],
      [{ project: 'p', experiment: 'e', dataset: 'd', metric: 'm' }, 'a'],
      [{ project: 'p', experiment: 'e', metric: '' }, 'b'],
      [{ project: 'p', dataset: '' }, 'd'],
      [{ project: 'p', metric: 'of q' }, ''],
      [{ project: 'p', experiment: 'd' }, ''],
      [{ project: 'p', experiment: 'nobody' }, ''],
      [{ project: 'nobody', experiment: '' }, ''],
    ])('restrict rows and causes to those of %j', async (query, ids) => {
      const expected = ids.split(' ').filter(Boolean);
      const sorted = (found: readonly (string | null | undefined)[]) =>
        found.toSorted((one, other) => ((one ?? '') < (other ?? '') ? -1 : 1));

      const statuses = await h.store.statuses(query);
      const transitions = await h.store.transitions(query);
      const failures = await h.store.failures(query);
      const { causes } = await h.store.causes({ ...query, since: 0, limit: 10 });

      expect(sorted(statuses.map(({ promptId }) => promptId))).toEqual(expected);
      expect(sorted(failures.map(({ promptId }) => promptId))).toEqual(expected);
      expect(sorted(causes.map(({ errorInfo }) => errorInfo?.error_id))).toEqual(expected);
      const moved = transitions.filter(({ to }) => to === 'FAILED').map(({ id }) => id);
      expect(sorted(moved)).toEqual(expected);
    });

    it('hold with the other filters, and from page to page', async () => {
      const query = { experiment: 'e', status: 'FAILED' } as const;
      const all = await h.store.statuses(query);
      const [first] = await h.store.statuses({ ...query, limit: 1 });
      expect(await h.store.statuses({ ...query, afterPrompt: first })).toEqual(all.slice(1));
      const failures = await h.store.failures({ experiment: 'e' });
      expect(failures).toHaveLength(3);
      const afterTransition = failures[0]?.transitionId;
      expect(await h.store.failures({ experiment: 'e', afterTransition })).toEqual(
        failures.slice(1),
      );
      const cause = failures.find(({ promptId }) => promptId === 'a')?.cause;
      for (const [experiment, count] of [
        ['e', 1],
        ['', 0],
      ] as const) {
        expect(await h.store.failures({ project: 'p', experiment, cause })).toHaveLength(count);
      }
      expect(await h.store.transitions({ experiment: 'e', since: 2010 })).toHaveLength(1);
    });

    it('take the labels that a prompt has now, which its rows show', async () => {
      await see(
        'p',
        { ...P, c: { experiment: 'new', dataset: 'd', metric: 'm2' } },
        'FAILED',
        4000,
      );
      const query = { project: 'p', experiment: 'new' };
      const experiment = 'new';
      expect(await h.store.statuses(query)).toMatchObject([
        { promptId: 'c', experiment, dataset: 'd', metric: 'm2' },
      ]);
      expect(await h.store.transitions(query)).toMatchObject([{ id: 'c', experiment }]);
      expect(await h.store.failures(query)).toMatchObject([{ promptId: 'c', experiment }]);
      expect(await h.store.statuses({ project: 'p', experiment: '' })).toHaveLength(1);
    });

    it('find every text that can be stored, and not what only looks like it', async () => {
      const labels = HARD_TEXTS.map((text, index) => [`${index}`, { experiment: text }] as const);
      await see('p', Object.fromEntries(labels), 'RUNNING', 5000);
      for (const [id, { experiment }] of labels) {
        const rows = await h.store.statuses({ project: 'p', experiment });
        expect(rows).toMatchObject([{ promptId: id, experiment }]);
      }
      expect(await h.store.statuses({ project: 'p', experiment: '\0' })).toEqual([]);
    });

    it('select the status, the transitions and the failures of one prompt', async () => {
      const only = { project: 'p', promptId: 'a' };
      expect(await h.store.statuses(only)).toMatchObject([{ ...only, ...P.a, status: 'FAILED' }]);
      expect(await h.store.statuses({ promptId: 'z' })).toMatchObject([{ project: 'q' }]);
      expect(await h.store.statuses({ ...only, status: 'RUNNING' })).toEqual([]);
      for (const project of ['q', 'nobody']) {
        expect(await h.store.statuses({ project, promptId: 'a' })).toEqual([]);
      }
      for (const promptId of ['', 'A', 'dataset', 'a\0', '\ud800', ...HARD_TEXTS]) {
        expect(await h.store.statuses({ promptId })).toEqual([]);
      }
      const known = HARD_TEXTS.map((id) => [id, { experiment: 'hard' }] as const);
      await see('p', { ...P, ...Object.fromEntries(known) }, 'RUNNING', 4000);
      for (const promptId of HARD_TEXTS) {
        expect(await h.store.statuses({ project: 'p', promptId })).toMatchObject([{ promptId }]);
      }
      await see('p', { b: P.b }, 'RUNNING', 5000);
      await see('p', { b: P.b }, 'RUNNING', 6000);
      expect(await h.store.statuses(only)).toEqual([]);
      expect(await h.store.transitions(only)).toHaveLength(2);
    });

    it('select the transitions and failures of a time and of one prompt', async () => {
      const ids = async (query: RowQuery) => {
        const transitions = await h.store.transitions(query);
        const failures = await h.store.failures(query);
        return [transitions.map(({ id }) => id), failures.map(({ promptId }) => promptId)];
      };
      expect(await ids({ project: 'p', since: 2000, until: 2001, promptId: 'a' })).toEqual([
        ['a'],
        ['a'],
      ]);
      expect(await ids({ promptId: 'z', until: 2010 })).toEqual([[], []]);
      expect(await ids({ promptId: 'z', until: 2011 })).toEqual([['z'], ['z']]);
      // A dataset is no prompt, and a text that no store can hold is none.
      expect(await ids({ promptId: 'dataset' })).toEqual([[], []]);
      for (const promptId of HARD_TEXTS) expect(await ids({ promptId })).toEqual([[], []]);
    });
  });

  describe('experiments as rows', () => {
    /** Polls p, whose experiments `late`, `early` and `same` move, and q. */
    beforeEach(async () => {
      await h.store.configureProjects(['p', 'q'], 500);
      const other = { still: ['RUNNING', 'still'], none: ['RUNNING'] } as const;
      const e = (status: string) => [status, 'early'] as const;
      const s = (status: string) => [status, 'same'] as const;
      const l = (status: string) => [status, 'late'] as const;
      const first = { l: l('RUNNING'), e: e('RUNNING'), s: s('RUNNING') };
      await pollItems(h.store, 'p', { ...other, ...first }, 1000);
      await pollItems(h.store, 'q', { x: ['RUNNING', 'early'] }, 1500);
      const second = { l: l('RUNNING'), e: e('COMPLETED'), s: s('COMPLETED') };
      await pollItems(h.store, 'p', { ...other, ...second }, 2000);
      const third = { ...second, l: l('FAILED'), gone: ['FAILED'] as const };
      await pollItems(h.store, 'p', { ...other, ...third }, 3000);
    });

    const namesOf = async (query: Parameters<Harness['store']['experiments']>[0]) =>
      (await h.store.experiments(query)).map(
        ({ project, experiment }) => `${project} ${experiment}`,
      );

    it('have the last move first, those without a move last', async () => {
      const names = await namesOf({ project: 'p' });
      expect(names).toHaveLength(4);
      expect([names[0], names[3]]).toEqual(['p late', 'p still']);
      expect(names.slice(1, 3).toSorted()).toEqual(['p early', 'p same']);
      expect(await namesOf({ limit: 1 })).toEqual(['p late']);
      expect((await namesOf({ since: 2000 })).toSorted()).toEqual(['p early', 'p late', 'p same']);
      expect((await namesOf({ experiment: 'early' })).toSorted()).toEqual(['p early', 'q early']);
      expect(await namesOf({ project: 'q', experiment: 'late' })).toEqual([]);
      expect(await namesOf({ experiment: '' })).toEqual([]);
    });

    it('are read from any of them on', async () => {
      const all = await h.store.experiments({});
      expect(all).toHaveLength(5);
      for (const [index, after] of all.entries()) {
        expect(await h.store.experiments({ after })).toEqual(all.slice(index + 1));
      }
      // A client can send any position, also one that is not of this store.
      const key = Number.MAX_SAFE_INTEGER;
      expect(await h.store.experiments({ after: { movedAt: key, key } })).toEqual(all);
    });

    it('are those of configured projects, or of the one that is asked for', async () => {
      await h.store.configureProjects(['q'], 4000);
      expect(await namesOf({})).toEqual(['q early']);
      expect(await namesOf({ project: 'p' })).toHaveLength(4);
    });

    it('leave the prompts without one, by status', async () => {
      const none = { PENDING: 0, RUNNING: 0, COMPLETED: 0, FAILED: 0, UNKNOWN: 0 };
      expect(await h.store.withoutExperiment('p')).toEqual({ ...none, RUNNING: 1, FAILED: 1 });
      expect(await h.store.withoutExperiment('q')).toEqual(none);
      expect(await h.store.withoutExperiment('nobody')).toEqual(none);
      await pollItems(h.store, 'p', { none: ['COMPLETED'] }, 5000);
      await pollItems(h.store, 'p', { none: ['COMPLETED'] }, 6000);
      expect(await h.store.withoutExperiment('p')).toEqual({ ...none, COMPLETED: 1 });
      expect(await namesOf({ project: 'p' })).toEqual([]);
    });
  });
}

import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { KnownRecord } from '../../../src/domain/record.ts';
import { KINDS } from '../../../src/domain/status.ts';
import type { PollHealth, StoreReader } from '../../../src/monitor/ports/store.ts';
import { changesOf, HARD_TEXTS, moveOf, recordOf, UP, type Harness } from './harness.ts';

export function describePolls(h: Harness): void {
  describe('polls', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    it('start without a baseline or records', async () => {
      expect(await h.store.loadKnown('p', ['prompt', 'dataset'])).toMatchObject({
        listings: new Map([
          ['prompt', { baselined: false, records: new Map() }],
          ['dataset', { baselined: false, records: new Map() }],
        ]),
      });
    });

    it('store an empty listing as the baseline', async () => {
      await h.see('p', {}, 1000);
      expect(await h.known('p')).toEqual({ baselined: true, records: new Map() });
    });

    it('store separate baselines for prompts and datasets', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      expect((await h.known('p', 'prompt'))?.baselined).toBe(true);
      expect((await h.known('p', 'dataset'))?.baselined).toBe(false);
    });

    it('store and load every field of a record exactly', async () => {
      const records: KnownRecord[] = [
        recordOf('plain', 'RUNNING'),
        recordOf('bare', 'PENDING', { name: undefined, timestamp: undefined }),
        recordOf('raw', 'UNKNOWN', { statusRaw: 'CANCELLED\u0001' }),
        recordOf('missing', 'FAILED', { missing: 2 }),
        recordOf('gone', 'COMPLETED', { missing: 3, gone: true }),
        recordOf('empty', 'RUNNING', { name: '', timestamp: '' }),
        ...HARD_TEXTS.map((text) => recordOf(text, 'RUNNING', { name: text, timestamp: text })),
      ];
      await h.commit('p', { prompt: changesOf({ baseline: true, records }) });
      const loaded = await h.known('p');
      expect(loaded?.records).toEqual(new Map(records.map((one) => [one.id, one])));
    });

    it('load only the requested records', async () => {
      const ids = [...HARD_TEXTS, ...Array.from({ length: 2500 }, (_, index) => `id-${index}`)];
      const statuses = Object.fromEntries(ids.map((id) => [id, 'RUNNING']));
      await h.commit('p', {
        prompt: changesOf({ baseline: true, records: ids.map((id) => recordOf(id, 'RUNNING')) }),
      });
      await h.see('p', { ...statuses, d: 'FAILED' }, 1000, 'dataset');
      const asked = [...HARD_TEXTS, ...ids.slice(-2100), 'unknown'];

      const { listings } = await h.store.loadKnown(
        'p',
        ['prompt', 'dataset'],
        new Map([['prompt', asked]]),
      );

      expect(listings.get('prompt')?.baselined).toBe(true);
      expect(listings.get('prompt')?.records).toEqual(
        new Map(asked.slice(0, -1).map((id) => [id, recordOf(id, 'RUNNING')])),
      );
      expect(listings.get('dataset')?.records.size).toBe(Object.keys(statuses).length + 1);
      const none = await h.store.loadKnown('p', ['prompt'], new Map([['prompt', []]]));
      expect(none.listings.get('prompt')).toEqual({ baselined: true, records: new Map() });
    });

    it('replace every field of a known record', async () => {
      const before = recordOf('x', 'UNKNOWN', { statusRaw: 'ODD', missing: 1, since: 1 });
      const after = recordOf('x', 'NONE', { name: undefined, timestamp: undefined, since: 2 });
      await h.commit('p', { dataset: changesOf({ baseline: true, records: [before] }) });
      await h.commit('p', { dataset: changesOf({ records: [after] }, [before]) });
      expect((await h.known('p', 'dataset'))?.records).toEqual(new Map([['x', after]]));
    });

    it('keep records with the same id apart by kind and by project', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      await h.see('p', { x: 'FAILED' }, 1000, 'dataset');
      await h.see('q', { x: 'COMPLETED' }, 1000);
      expect((await h.known('p'))?.records.get('x')?.status).toBe('RUNNING');
      expect((await h.known('p', 'dataset'))?.records.get('x')?.status).toBe('FAILED');
      expect((await h.known('q'))?.records.get('x')?.status).toBe('COMPLETED');
    });

    it('assign increasing ids to transitions in commit order', async () => {
      await h.see('p', { x: 'PENDING', y: 'PENDING' }, 1000);
      const first = await h.see('p', { x: 'RUNNING', y: 'FAILED' }, 1100);
      const second = await h.see('p', { x: 'COMPLETED', y: 'RUNNING' }, 1200);
      const all = [...(first ?? []), ...(second ?? [])];
      expect(all.map(({ id, from, to }) => [id, from, to])).toEqual([
        ['x', 'PENDING', 'RUNNING'],
        ['y', 'PENDING', 'FAILED'],
        ['x', 'RUNNING', 'COMPLETED'],
        ['y', 'FAILED', 'RUNNING'],
      ]);
      expect(all[0]).toMatchObject({ kind: 'prompt', name: 'name of x', heldMs: 100 });
      const ids = all.map(({ transitionId }) => transitionId);
      expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    });

    it('commit prompts and datasets together', async () => {
      const transitions = await h.commit('p', {
        prompt: changesOf({ baseline: true, records: [recordOf('x', 'RUNNING')] }),
        dataset: changesOf({
          records: [recordOf('d', 'FAILED')],
          transitions: [
            { id: 'd', name: undefined, from: 'NONE', to: 'FAILED', heldMs: undefined },
          ],
        }),
      });
      expect(transitions).toMatchObject([{ kind: 'dataset', id: 'd', from: 'NONE' }]);
    });

    it('replace the stored health with the given one', async () => {
      const down: PollHealth = {
        up: false,
        consecutiveFailures: 7,
        reason: 'auth',
        lastPollAt: 2000,
        lastSuccessAt: 900,
      };
      const poll = { project: 'p', at: 2000, token: '', listings: new Map() };
      await h.store.commitPoll({ ...poll, health: down });
      expect(await h.store.loadHealth('p')).toEqual(down);
      await h.store.commitPoll({ ...poll, health: UP });
      expect(await h.store.loadHealth('p')).toEqual(UP);
      expect((await h.store.loadHealth('q')).up).toBe(false);
    });

    it('show their health without changes at once, and to a StoreReader soon after', async () => {
      const reader = await h.openReader();
      await h.see('p', { x: 'RUNNING' }, 1000);
      const health = { ...UP, lastPollAt: 2000, lastSuccessAt: 2000 };
      const poll = { project: 'p', at: 2000, token: '', listings: new Map() };
      await h.store.commitPoll({ ...poll, health });
      const healthOf = async (store: Pick<StoreReader, 'snapshot'>) =>
        (await store.snapshot()).projects.find(({ project }) => project === 'p')?.health;
      expect(await healthOf(h.store)).toEqual(health);
      await vi.waitFor(async () => expect(await healthOf(reader)).toEqual(health), 60_000);
      await reader.close();
    });

    it('that could not be stored have their health stored alone, unless a later one comes first', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      const failed = { ...UP, up: false, consecutiveFailures: 1, reason: 'store' as const };
      h.store.keepHealth('p', failed);
      expect((await h.store.snapshot('p')).projects[0]?.health).toEqual(failed);
      expect(await h.store.loadHealth('p')).toEqual(failed);
      h.store.keepHealth('p', failed);
      await h.see('p', { x: 'FAILED' }, 2000);
      expect(await h.store.loadHealth('p')).toEqual(UP);
      h.store.keepHealth('nobody', failed);
      expect((await h.store.loadHealth('p')).up).toBe(true);
    });

    it('with changes store their own health, not that of the poll before', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      const late = { ...UP, lastPollAt: 2000, lastSuccessAt: 2000 };
      const poll = { project: 'p', at: 2000, token: '', listings: new Map() };
      await h.store.commitPoll({ ...poll, health: late });
      await h.see('p', { x: 'FAILED' }, 3000);
      expect((await h.store.snapshot()).projects[0]?.health).toEqual(UP);
      await h.reopen();
      expect(await h.store.loadHealth('p')).toEqual(UP);
    });

    it('write nothing, not even health, if computed from an old token', async () => {
      const { token } = await h.store.loadKnown('p', []);
      await h.see('p', { x: 'RUNNING' }, 1000);
      const before = [await h.store.snapshot(), await h.store.loadKnown('p', KINDS)];
      const late = {
        project: 'p',
        at: 2000,
        health: { ...UP, up: false, consecutiveFailures: 3 },
        token,
        listings: new Map([
          [
            'prompt' as const,
            changesOf({ records: [recordOf('x', 'FAILED')], transitions: [moveOf('x', 'FAILED')] }),
          ],
        ]),
      };
      expect(await h.store.commitPoll(late)).toBeUndefined();
      expect([await h.store.snapshot(), await h.store.loadKnown('p', KINDS)]).toEqual(before);
      expect(await h.store.transitions({})).toEqual([]);
    });

    it('without listings keep the token', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      const { token } = await h.store.loadKnown('p', []);
      expect(await h.commit('p', {})).toEqual([]);
      expect((await h.store.loadKnown('p', [])).token).toBe(token);
    });

    it('are rejected if another one computed from the same token was committed', async () => {
      await h.see('p', { x: 'RUNNING' }, 1000);
      const from = await h.store.loadKnown('p', ['prompt']);
      const failed = () =>
        h.commit(
          'p',
          {
            prompt: changesOf({
              records: [recordOf('x', 'FAILED')],
              transitions: [moveOf('x', 'FAILED')],
            }),
          },
          { from },
        );
      const results = await Promise.all([failed(), failed()]);
      expect(results.filter((result) => result === undefined)).toHaveLength(1);
      expect(await h.store.transitions({})).toHaveLength(1);
    });

    it('are kept across a restart', async () => {
      await h.see('p', { x: 'RUNNING', y: 'PENDING' }, 1000);
      await h.see('p', { x: 'FAILED' }, 1100);
      const read = async () => [
        await h.store.snapshot(),
        (await h.store.loadKnown('p', KINDS)).listings,
        await h.store.transitions({}),
        await h.store.failures({}),
        await h.store.pendingFailures({ limitPerProject: 10 }),
      ];
      const before = await read();
      await h.reopen();
      expect(await read()).toEqual(before);
    });

    it('emit store.committed with the duration of the commit', async () => {
      h.log.clear();
      await h.see('p', { x: 'RUNNING' }, 1000);
      await h.store.prune({ before: 0, firstDay: 0 });
      expect(h.log.of('store.committed')[0]?.durationMs).toBeGreaterThanOrEqual(0);
      expect(h.log.of('store.commit_failed')).toEqual([]);
    });
  });
}

import { describe, expect, it } from 'vitest';
import type { Status } from '../../../src/domain/status.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { changesOf, HARD_TEXTS, recordOf, UP, type Harness } from './harness.ts';

export function describeProjects(h: Harness): void {
  describe('projects', () => {
    it('are empty in a new store', async () => {
      expect(await h.store.projects()).toEqual([]);
      expect(await h.store.snapshot()).toEqual({
        projects: [],
        backlog: { count: 0, oldestAt: undefined },
      });
    });

    it('start unpolled, down and with a count of 0 for every status', async () => {
      await h.store.configureProjects(['b', 'a'], 500);
      const { projects } = await h.store.snapshot();
      expect(projects.map(({ project }) => project)).toEqual(['a', 'b']);
      expect(projects[0]).toEqual({
        project: 'a',
        configuredAt: 500,
        health: {
          up: false,
          consecutiveFailures: 0,
          reason: undefined,
          lastPollAt: undefined,
          lastSuccessAt: undefined,
        },
        listings: new Map([
          ['prompt', emptyListing(['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN'])],
          [
            'dataset',
            emptyListing(['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'UNKNOWN', 'NONE']),
          ],
        ]),
      });
    });

    it('leave the snapshot when removed from the configuration, but stay listed', async () => {
      await h.store.configureProjects(['a', 'b'], 500);
      await h.store.configureProjects(['b'], 600);
      expect((await h.store.snapshot()).projects.map(({ project }) => project)).toEqual(['b']);
      expect(await h.store.projects()).toEqual(['a', 'b']);
    });

    it('keep their state when removed and configured again', async () => {
      await h.store.configureProjects(['a'], 500);
      await h.see('a', { x: 'RUNNING' }, 1000);
      await h.see('a', { x: 'FAILED' }, 1100);
      const before = await h.store.snapshot();
      await h.store.configureProjects([], 600);
      await h.store.configureProjects(['a'], 700);
      expect(await h.store.snapshot()).toEqual(before);
      expect(await h.store.loadHealth('a')).toEqual(UP);
    });

    it('refuse a poll from before they were removed and configured again', async () => {
      await h.store.configureProjects(['a'], 500);
      const from = await h.store.loadKnown('a', ['prompt']);
      await h.store.configureProjects([], 600);
      await h.store.configureProjects(['a'], 700);
      const prompt = changesOf({ records: [recordOf('x', 'RUNNING')] });
      expect(await h.commit('a', { prompt }, { from })).toBeUndefined();
      await h.reopen();
      expect((await h.known('a'))?.records.size).toBe(0);
    });

    it('are removed at the time of the first configuration without them', async () => {
      await h.store.configureProjects(['a'], 500);
      await h.fail('a', ['x']);
      await h.store.configureProjects([], 600);
      await h.store.configureProjects([], 700);
      const [pending] = await h.store.pendingFailures({ limitPerProject: 1 });
      expect(pending?.removedAt).toBe(600);
    });

    it.each(HARD_TEXTS)('keep the project id %j unchanged', async (id) => {
      await h.store.configureProjects([id, 'other'], 500);
      await h.see(id, { x: 'RUNNING' }, 1000);
      expect(await h.store.projects()).toEqual(expect.arrayContaining([id, 'other']));
      expect((await h.store.statuses({ project: id })).map(({ project }) => project)).toEqual([id]);
    });

    it.each([
      ['loadHealth', () => h.store.loadHealth('nobody')],
      ['loadKnown', () => h.store.loadKnown('nobody', ['prompt'])],
      ['commitPoll', () => h.commit('nobody', {})],
    ])('are rejected by %s with a StoreError if unknown', async (_name, attempt) => {
      await expect(attempt()).rejects.toBeInstanceOf(StoreError);
    });
  });
}

function emptyListing(statuses: readonly Status[]) {
  return {
    counts: new Map(statuses.map((status) => [status, 0])),
    missing: 0,
    goneTotal: 0,
    transitions: [],
    lastFailureAt: undefined,
    oldest: new Map(),
    isIdle: false,
    errors: [],
  };
}

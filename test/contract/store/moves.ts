import { beforeEach, describe, expect, it } from 'vitest';
import type { MoveQuery } from '../../../src/monitor/ports/store.ts';
import { type Harness } from './harness.ts';

export function describeMoves(h: Harness): void {
  describe('moves', () => {
    const query: MoveQuery = { since: 1000, spanMs: 1000, limit: 100 };

    beforeEach(async () => {
      await h.store.configureProjects(['p', 'q'], 500);
      await h.see('p', { a: 'PENDING', b: 'PENDING' }, 900);
      await h.see('q', { c: 'RUNNING' }, 900);
      await h.see('p', { a: 'RUNNING', b: 'RUNNING' }, 1999);
      await h.see('p', { a: 'FAILED', b: 'RUNNING', n: 'PENDING' }, 2000);
      await h.see('q', { c: 'FAILED' }, 5500);
      await h.see('q', { d: 'RUNNING' }, 5500, 'dataset');
      await h.see('q', { d: 'FAILED' }, 5600, 'dataset');
    });

    const sorted = (moves: readonly object[]) =>
      moves.map((move) => JSON.stringify(move)).toSorted();

    it('are counted for prompts by project, time span and status pair', async () => {
      const { since, moves } = await h.store.moves(query);

      expect(since).toBe(1000);
      expect(sorted(moves)).toEqual(
        sorted([
          { project: 'p', span: 0, from: 'PENDING', to: 'RUNNING', count: 2, listed: 2 },
          { project: 'p', span: 1, from: 'NEW', to: 'PENDING', count: 1, listed: 1 },
          { project: 'p', span: 1, from: 'RUNNING', to: 'FAILED', count: 1, listed: 1 },
          { project: 'q', span: 4, from: 'RUNNING', to: 'FAILED', count: 1, listed: 1 },
        ]),
      );
    });

    it('are limited to one project by its id', async () => {
      const { moves } = await h.store.moves({ ...query, project: 'q' });

      expect(moves).toHaveLength(1);
      expect(moves[0]).toMatchObject({ project: 'q', span: 4 });
      expect((await h.store.moves({ ...query, project: 'nobody' })).moves).toEqual([]);
    });

    it('of prompts that are gone by now are left out of the listed count', async () => {
      await h.see('p', { b: 'RUNNING', n: 'PENDING' }, 6000);
      await h.see('p', { b: 'RUNNING', n: 'PENDING' }, 7000);

      const { moves } = await h.store.moves({ ...query, project: 'p' });

      expect(moves.find(({ span }) => span === 0)).toMatchObject({ count: 2, listed: 1 });
      expect(moves.find(({ to }) => to === 'FAILED')).toMatchObject({ count: 1, listed: 0 });
    });

    it('omit the oldest ones beyond the limit and return the time of the newest omitted one', async () => {
      const { since, moves } = await h.store.moves({ ...query, limit: 3 });

      expect(since).toBe(1999);
      expect(moves.map(({ span }) => span).toSorted((a, b) => a - b)).toEqual([1, 1, 4]);
    });

    it('omit all moves of one instant if the limit would split them', async () => {
      const { since, moves } = await h.store.moves({ ...query, limit: 2 });

      expect(since).toBe(2000);
      expect(moves.map(({ project }) => project)).toEqual(['q']);
    });

    it('of a removed project are returned only when it is requested by id', async () => {
      await h.store.configureProjects(['p'], 6000);

      expect((await h.store.moves(query)).moves.some(({ project }) => project === 'q')).toBe(false);
      expect((await h.store.moves({ ...query, project: 'q' })).moves).toHaveLength(1);
    });
  });
}

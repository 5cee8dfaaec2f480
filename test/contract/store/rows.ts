import { beforeEach, describe, expect, it } from 'vitest';
import { type Harness } from './harness.ts';

export function describeRows(h: Harness): void {
  describe('row queries', () => {
    beforeEach(async () => {
      await h.store.configureProjects(['p', 'q'], 500);
      await h.see('p', { a: 'RUNNING', b: 'PENDING' }, 1000);
      await h.see('q', { c: 'RUNNING' }, 2000);
      await h.see('p', { a: 'FAILED', b: 'ODD' }, 3000);
      await h.see('q', { c: 'FAILED' }, 4000);
      await h.see('p', { d: 'RUNNING' }, 4500, 'dataset');
      await h.see('p', { d: 'FAILED' }, 5000, 'dataset');
    });

    const ids = (rows: readonly { promptId?: string; id?: string }[]) =>
      rows.map((row) => row.promptId ?? row.id);

    it('return statuses of prompts that are not gone, newest change first, then by id', async () => {
      expect(ids(await h.store.statuses({}))).toEqual(['c', 'a', 'b']);
      expect((await h.store.statuses({ status: 'UNKNOWN' }))[0]).toEqual({
        project: 'p',
        promptId: 'b',
        promptName: 'name of b',
        status: 'UNKNOWN',
        statusRaw: 'ODD',
        since: 3000,
        missing: 0,
      });
      await h.see('p', { a: 'FAILED' }, 6000);
      await h.see('p', { a: 'FAILED' }, 7000);
      expect(ids(await h.store.statuses({}))).toEqual(['c', 'a']);
    });

    it.each([
      [{ project: 'p' }, ['a', 'b']],
      [{ status: 'FAILED' as const }, ['c', 'a']],
      [{ since: 3001 }, ['c']],
      [{ since: 3000 }, ['c', 'a', 'b']],
      [{ limit: 2 }, ['c', 'a']],
      [{ limit: 0 }, []],
      [{ project: 'p', status: 'FAILED' as const, since: 3000, limit: 5 }, ['a']],
      [{ project: 'nobody' }, []],
    ])('return statuses filtered by %j', async (query, expected) => {
      expect(ids(await h.store.statuses(query))).toEqual(expected);
    });

    it.each([
      [{}, ['d', 'c', 'b', 'a']],
      [{ project: 'p' }, ['d', 'b', 'a']],
      [{ since: 4000 }, ['d', 'c']],
      [{ project: 'p', since: 3000, limit: 2 }, ['d', 'b']],
      [{ project: 'nobody' }, []],
    ])('return transitions filtered by %j, newest first', async (query, expected) => {
      expect(ids(await h.store.transitions(query))).toEqual(expected);
    });

    it('return statuses with the oldest change first when ordered by oldest', async () => {
      await h.see('p', { a: 'FAILED', b: 'ODD', e: 'RUNNING', f: 'RUNNING' }, 6000);

      const oldest = await h.store.statuses({ project: 'p', order: 'oldest', limit: 3 });

      expect(ids(oldest)).toEqual(['a', 'b', 'e']);
      const running = { project: 'p', status: 'RUNNING', order: 'oldest', limit: 1 } as const;
      expect(ids(await h.store.statuses(running))).toEqual(['e']);
    });

    it('return the statuses after any given prompt', async () => {
      const all = await h.store.statuses({});

      for (const [index, afterPrompt] of all.entries()) {
        expect(await h.store.statuses({ afterPrompt })).toEqual(all.slice(index + 1));
      }
    });

    it('return the transitions and failures after a given transition', async () => {
      const transitions = await h.store.transitions({});
      const failures = await h.store.failures({});

      for (const [index, { transitionId: afterTransition }] of transitions.entries()) {
        expect(await h.store.transitions({ afterTransition })).toEqual(
          transitions.slice(index + 1),
        );
      }
      const oldest = { order: 'oldest', project: 'p', since: 3000 } as const;
      const rising = transitions
        .filter(({ project, at }) => project === 'p' && at >= 3000)
        .toReversed();
      expect(await h.store.transitions(oldest)).toEqual(rising);
      const [first] = rising;
      expect(
        await h.store.transitions({ ...oldest, afterTransition: first?.transitionId, limit: 1 }),
      ).toEqual(rising.slice(1, 2));
      const afterTransition = failures[0]?.transitionId;
      expect(await h.store.failures({ afterTransition })).toEqual(failures.slice(1));
    });

    it('return transitions with kind, time and both statuses', async () => {
      expect((await h.store.transitions({ limit: 1 }))[0]).toEqual({
        transitionId: expect.any(Number),
        at: 5000,
        project: 'p',
        kind: 'dataset',
        id: 'd',
        from: 'RUNNING',
        to: 'FAILED',
      });
    });

    it.each([
      [{}, ['c', 'a']],
      [{ project: 'p' }, ['a']],
      [{ since: 4000 }, ['c']],
      [{ limit: 1 }, ['c']],
      [{ project: 'nobody' }, []],
    ])(
      'return failures filtered by %j, newest first, without settlement while pending',
      async (query, expected) => {
        const rows = await h.store.failures(query);
        expect(ids(rows)).toEqual(expected);
        expect(rows.every(({ settlement }) => settlement === undefined)).toBe(true);
      },
    );

    it('return the history of a removed project always, its statuses only by project id', async () => {
      await h.store.configureProjects(['q'], 6000);
      expect(ids(await h.store.statuses({}))).toEqual(['c']);
      expect(ids(await h.store.statuses({ project: 'p' }))).toEqual(['a', 'b']);
      expect(ids(await h.store.transitions({}))).toEqual(['d', 'c', 'b', 'a']);
      expect(ids(await h.store.failures({ project: 'p' }))).toEqual(['a']);
    });
  });
}

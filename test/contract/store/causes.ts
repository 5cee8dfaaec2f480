import { beforeEach, describe, expect, it } from 'vitest';
import { causeOf } from '../../../src/domain/cause.ts';
import { withCause, settle } from '../../support/failures.ts';
import type { Harness } from './harness.ts';

export function describeCauses(h: Harness): void {
  describe('causes', () => {
    beforeEach(() => h.store.configureProjects(['p', 'q'], 500));

    const TIMEOUT = { error_id: 'TIMEOUT', error_msg: 'model m1 timed out after 30 s' };
    const PARSE = { error_id: 'PARSE', error_msg: 'not JSON' };

    /** Lets a prompt fail for each entry and settles it with that error_info, or without one if undefined. */
    async function fail(
      project: string,
      errors: readonly ({ error_id: string | null; error_msg: string } | undefined)[],
      at = 1000,
    ) {
      const ids = await h.fail(
        project,
        errors.map((_, index) => `${at} ${index}`),
        at,
      );
      for (const [index, id] of ids.entries()) {
        const errorInfo = errors[index];
        const settlement = errorInfo
          ? { errorInfo, errorMsgTruncated: false }
          : ({ reason: 'not_found' } as const);
        await settle(h.store, id, settlement, at + 5);
      }
      return ids;
    }

    const errorsOf = async (project: string) =>
      (await h.listing(project)).errors.map(({ label, count, firstSeenAt }) => {
        return `${label}: ${count} since ${firstSeenAt}`;
      });

    it('count each failure once under its error_id', async () => {
      const [first = 0] = await fail('p', [TIMEOUT, TIMEOUT, PARSE, undefined]);
      const again = { transitionId: first, token: undefined };
      await h.store.settleFailure(
        again,
        withCause({ errorInfo: PARSE, errorMsgTruncated: false }),
        9000,
      );
      await fail('p', [TIMEOUT], 2000);
      await fail('q', [PARSE], 3000);
      const expected = ['PARSE: 1 since 1005', 'TIMEOUT: 3 since 1005', 'none: 1 since 1005'];
      expect((await errorsOf('p')).toSorted()).toEqual(expected);
      expect(await errorsOf('q')).toEqual(['PARSE: 1 since 3005']);
      await h.reopen();
      expect((await errorsOf('p')).toSorted()).toEqual(expected);
    });

    it('count the error_ids "none" and "other" under the reserved labels of that name', async () => {
      const named = (error_id: string) => ({ error_id, error_msg: 'x' });
      await fail('p', [named('none'), undefined, named('other'), named('')]);
      expect((await errorsOf('p')).toSorted()).toEqual([
        'none: 3 since 1005',
        'other: 1 since 1005',
      ]);
      await h.store.prune({ before: 9000, firstDay: 0 });
      expect(await errorsOf('p')).toHaveLength(2);
    });

    it('escape control characters in error_id labels and cut them to 128 characters', async () => {
      const ids = [
        '\u0001\u202E"},{a="b\\',
        '{error_id="x"} 1\n# HELP x',
        '\uD800',
        'é'.repeat(1024),
      ];
      await fail(
        'p',
        ids.map((error_id) => ({ error_id, error_msg: 'x' })),
      );
      expect((await errorsOf('p')).toSorted()).toEqual([
        '\\u0001\\u202e"},{a="b\\: 1 since 1005',
        '\\ud800: 1 since 1005',
        '{error_id="x"} 1\\n# HELP x: 1 since 1005',
        `${'é'.repeat(128)}: 1 since 1005`,
      ]);
    });

    it('have labels for the first 20 error_ids and count all later ones as other', async () => {
      const errors = Array.from({ length: 25 }, (_, index) => {
        return { error_id: `E${String(index).padStart(2, '0')}`, error_msg: 'x' };
      });
      await fail('p', errors);
      await fail('p', [errors[24], errors[0], undefined], 2000);
      const found = await errorsOf('p');
      expect(found).toHaveLength(22);
      expect(found).toContain('E00: 2 since 1005');
      expect(found).toContain('E19: 1 since 1005');
      expect(found).toContain('other: 6 since 1005');
      expect(found).toContain('none: 1 since 2005');
    });

    it('lose the label of an error_id that is past the retention, but keep the label "none"', async () => {
      await fail('p', [TIMEOUT, undefined]);
      await fail('p', [PARSE], 5000);
      await h.store.prune({ before: 2000, firstDay: 0 });
      expect((await errorsOf('p')).toSorted()).toEqual([
        'PARSE: 1 since 5005',
        'none: 1 since 1005',
      ]);
      await fail('p', [TIMEOUT], 6000);
      expect(await errorsOf('p')).toContain('TIMEOUT: 1 since 6005');
      await h.store.configureProjects(['q'], 7000);
      await h.store.prune({ before: 8000, firstDay: 0 });
      await h.store.configureProjects(['p', 'q'], 9000);
      expect(await errorsOf('p')).toEqual([]);
    });

    it('are stored with settled failures, which can be filtered by cause', async () => {
      await fail('p', [TIMEOUT, PARSE, undefined]);
      await h.fail('p', ['pending'], 2000);
      const failures = await h.store.failures({ project: 'p' });
      expect(failures.map(({ cause }) => cause)).toEqual([
        undefined,
        causeOf(undefined).id,
        causeOf(PARSE).id,
        causeOf(TIMEOUT).id,
      ]);
      const found = await h.store.failures({ cause: causeOf(PARSE).id });
      expect(found).toMatchObject([{ settlement: { errorInfo: PARSE } }]);
    });

    it('are listed by number of failures since a time, with new ones marked', async () => {
      await fail('p', [TIMEOUT], 1000);
      const [, last = 0] = await fail('p', [PARSE, TIMEOUT], 2000);
      await fail('q', [PARSE, PARSE], 3000);
      await h.fail('q', ['pending'], 3500);
      const { causes, others } = await h.store.causes({ since: 2000, limit: 9 });
      expect(others).toEqual({ causes: 0, count: 0 });
      expect(causes).toMatchObject([
        { cause: causeOf(PARSE).id, count: 3, projects: 2, firstAt: 2000, lastAt: 3000 },
        { cause: causeOf(TIMEOUT).id, count: 1, projects: 1, transitionId: last },
      ]);
      expect(causes.map(({ isNew, errorInfo }) => [isNew, errorInfo])).toEqual([
        [true, PARSE],
        [false, TIMEOUT],
      ]);
    });

    it('are limited to one project and a maximum number, with the rest summed up', async () => {
      await fail('p', [TIMEOUT, TIMEOUT, PARSE, undefined]);
      await fail('q', [PARSE]);
      const { causes, others } = await h.store.causes({ project: 'p', since: 0, limit: 1 });
      expect(causes).toMatchObject([{ cause: causeOf(TIMEOUT).id, count: 2, projects: 1 }]);
      expect(others).toEqual({ causes: 2, count: 2 });
      expect(await h.store.causes({ project: 'nobody', since: 0, limit: 1 })).toEqual({
        causes: [],
        others: { causes: 0, count: 0 },
      });
    });

    it('count only the newest failures, up to maxFailures', async () => {
      await fail('p', [TIMEOUT, TIMEOUT], 1000);
      await fail('q', [PARSE], 2000);
      await fail('p', [PARSE], 3000);
      const { causes, others } = await h.store.causes({ since: 0, limit: 9, maxFailures: 2 });
      expect(causes).toMatchObject([{ cause: causeOf(PARSE).id, count: 2 }]);
      expect(others).toEqual({ causes: 0, count: 0 });
    });

    it('are the same through a StoreReader', async () => {
      await fail('p', [TIMEOUT, undefined]);
      const query = { since: 0, limit: 9 };
      const reader = await h.openReader();
      const seen = await reader.causes(query);
      await reader.close();
      expect(seen).toEqual(await h.store.causes(query));
      expect(seen.causes.find(({ errorInfo }) => errorInfo === undefined)?.cause).toBe(
        causeOf(undefined).id,
      );
    });
  });
}

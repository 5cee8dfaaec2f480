import { expect, it } from 'vitest';
import { createKnownPages } from '../../../../src/store/sqlite/sql/known.ts';
import { PART_ROWS } from '../../../../src/store/sqlite/sql/poll-rows.ts';
import type { RecordColumns } from '../../../../src/store/rows.ts';

it('pages of known records are forgotten once one cannot be read', () => {
  const row: RecordColumns = ['a', 'RUNNING', null, null, null, 1, 0, 0];
  let isDamaged = false;
  const next = (max: number) => {
    if (isDamaged) throw new Error('disk I/O error');
    return Array.from({ length: max }, () => row);
  };
  const pages = createKnownPages();
  const { more = 0, listings } = pages.first({
    token: '1',
    listings: [{ kind: 'prompt', baselined: true, next }],
  });
  expect(listings[0]?.rows).toHaveLength(PART_ROWS);

  isDamaged = true;
  expect(() => pages.next(more)).toThrow('disk I/O error');

  expect(() => pages.next(more)).toThrow('there is no page');
});

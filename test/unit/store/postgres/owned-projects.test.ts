import { expect, it } from 'vitest';
import {
  OwnedProjects,
  SCRAPE,
  TOTALS,
} from '../../../../src/store/postgres/ownership/owned-projects.ts';
import { toProjectFigures } from '../../../../src/store/rows.ts';
import { fakeClock } from '../../../support/monitor.ts';

const FIGURES = toProjectFigures({
  id: 'p',
  configured_at: 1,
  up: true,
  consecutive_failures: 0,
  reason: null,
  last_poll_at: 1,
  last_success_at: 1,
  steady_since: 1,
  prompts: {},
  datasets: {},
  errors: [['E', 1, 5]],
});

/** A worker that owns one project, and the answer to its read of the totals. */
function ownerOfOne() {
  const totals = Promise.withResolvers<readonly unknown[]>();
  const owned = new OwnedProjects({
    worker: 'w',
    database: {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as the statements say
      query: (async (statement: unknown) => {
        if (statement === TOTALS) return await totals.promise;
        return statement === SCRAPE ? [{ configured: 1, count: 0, oldest_at: null }] : [];
      }) as never,
      attempt: () => Promise.reject(new Error('nothing is committed')),
    },
    reads: { read: () => Promise.reject(new Error('nothing else is read')) },
    write: () => Promise.reject(new Error('nothing is written')),
    clock: fakeClock(),
    emit: () => {},
    signal: new AbortController().signal,
  });
  owned.own('p', 'token', FIGURES);
  return { owned, totals };
}

it('a total that a settlement has changed while the totals are read does not go back', async () => {
  const { owned, totals } = ownerOfOne();
  const scraped = owned.snapshot();
  owned.figures.changeError('p', 'E', { label: 'E', count: 2, firstSeenAt: 5 });
  totals.resolve([{ id: 'p', errors: [['E', 1, 5]] }]);
  const [project] = (await scraped).projects;
  expect(project?.listings.get('prompt')?.errors).toEqual([
    { label: 'E', count: 2, firstSeenAt: 5 },
  ]);
});

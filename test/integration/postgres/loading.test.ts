import { expect, it } from 'vitest';
import type { Kind } from '../../../src/domain/status.ts';
import { knownQuery } from '../../../src/store/postgres/sql/known.ts';
import { pollItems } from '../../support/experiments.ts';
import { describePostgres } from '../../support/postgres-store.ts';

describePostgres('what a PostgreSQL store knows', (open) => {
  it.each<readonly [what: string, only: ReadonlyMap<Kind, readonly string[]>, labels: string[]]>([
    ['all records', new Map(), ['new-a', 'new-b']],
    ['some records', new Map([['prompt', ['b', 'nobody']]]), ['new-b']],
  ])('has of %s only the labels that they have now', async (_, only, labels) => {
    await using db = await open();
    const { store } = await db.owner(['p']);
    for (const run of ['old', 'new']) {
      const items = { a: ['RUNNING', `${run}-a`], b: ['RUNNING', `${run}-b`] } as const;
      await pollItems(store, 'p', items, 1000);
    }
    const { statement, values } = knownQuery('p', ['prompt'], only);
    const [row] = await db.query(statement.text, values);
    const texts = Array.from(row?.['labels'] as Iterable<[number, string]>, ([, text]) => text);
    expect(texts.toSorted()).toEqual(labels);
  });
});

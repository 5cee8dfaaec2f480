import { expect, it } from 'vitest';
import { Reads } from '../../../src/store/reads.ts';
import { createDb, forPostgres } from '../../../src/store/sql.ts';
import { pollItems } from '../../support/experiments.ts';
import { describePostgres, type TestDatabase } from '../../support/postgres-store.ts';

const PROMPTS = 2000;
/** Rows that the steps of a plan may handle together. A loop over all prompts for each prompt handles 4,000,000. */
const MAX_ROWS = 50 * PROMPTS;

// A plan depends on what the server knows of the tables. It knows nothing of new ones until it has analysed them.
describePostgres('a plan of PostgreSQL', (open) => {
  it.each(['without', 'with'])(
    'handles no row for each other row, %s statistics',
    async (statistics) => {
      await using db = await open();
      const { store } = await db.owner(['p']);
      for (const [at, status] of ['PENDING', 'RUNNING', 'FAILED'].entries()) {
        const ids = Array.from({ length: PROMPTS }, (_, n) => `prompt-${n}`);
        const items = ids.map((id, n) => [id, [status, `e${n % 2}`]] as const);
        await pollItems(store, 'p', Object.fromEntries(items), 2000 + at);
      }
      if (statistics === 'with') await db.query('ANALYZE');
      const rows: number[] = [];
      const reads = readsOf(db, rows);

      for (const of of [{}, { project: 'p' }]) {
        const since = 1;
        await reads.moves({ ...of, since, spanMs: 1000, limit: 20_000 });
        await reads.failureCounts({ ...of, since, limitPerProject: 10_000 });
        await reads.experiments({ ...of, limit: 100 });
        for (const labels of [{}, { experiment: 'e1' }, { experiment: '' }]) {
          await reads.transitions({ ...of, ...labels, limit: 100 });
          await reads.failures({ ...of, ...labels, limit: 100 });
          await reads.statuses({ ...of, ...labels, limit: 100 });
          await reads.causes({ ...of, ...labels, since, limit: 5 });
        }
      }
      await reads.withoutExperiment('p');
      await reads.unfinishedExperiments(['p'], 100);

      expect(rows).toHaveLength(34);
      expect(Math.max(...rows)).toBeLessThan(MAX_ROWS);
    },
  );
});

/** Reads that add to `rows` how many rows the steps of each plan handle. */
function readsOf(db: TestDatabase, rows: number[]): Reads {
  const answer: Parameters<typeof createDb>[0] = async (_, asked, parameters) => {
    const { text, values } = forPostgres(asked, parameters);
    const [explained] = await db.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server says so
    const plans = explained?.['QUERY PLAN'] as readonly { readonly Plan: Step }[];
    rows.push(...plans.map(({ Plan }) => rowsOf(Plan)));
    return await db.query(text, values);
  };
  return new Reads(createDb(answer));
}

interface Step {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly Step[];
}

/** Counts what each step returns and what it reads in vain. */
function rowsOf({ Plans = [], ...step }: Step): number {
  const { 'Rows Removed by Filter': unfit = 0, 'Rows Removed by Join Filter': unjoined = 0 } = step;
  const own = (step['Actual Rows'] + unfit + unjoined) * step['Actual Loops'];
  return Plans.reduce((sum, inner) => sum + rowsOf(inner), own);
}

import { expect, it } from 'vitest';
import { pollItems } from '../../support/experiments.ts';
import { describePostgres } from '../../support/postgres-store.ts';

describePostgres('retention of a PostgreSQL store', (open) => {
  it('deletes the labels that nothing has any more, in projects with many', async () => {
    await using db = await open();
    const { store } = await db.owner(['p', 'few']);
    const poll = async (project: string, name: string, count: number) => {
      const ids = Array.from({ length: count }, (_, id) => id);
      const items = ids.map((id) => [`m-${id}`, ['RUNNING', `${name}-${id}`]] as const);
      await pollItems(store, project, Object.fromEntries(items), 1000);
    };
    for (const name of ['old', 'new']) {
      await poll('p', name, 2500);
      await poll('few', name, 500);
    }
    await store.prune({ before: 2000, firstDay: 0 });
    const counts = await db.query(
      `SELECT p.id, count(*)::integer AS labels FROM evalwatch.label JOIN evalwatch.project p USING (project_key)
       GROUP BY 1 ORDER BY 1`,
    );
    expect(counts).toEqual([
      { id: 'few', labels: 1000 },
      { id: 'p', labels: 2500 },
    ]);
  });
});

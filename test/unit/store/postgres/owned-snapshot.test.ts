import { expect, it } from 'vitest';
import { StoreError } from '../../../../src/monitor/errors.ts';
import type { Statement } from '../../../../src/store/postgres/database.ts';
import { createOwnedSnapshot } from '../../../../src/store/postgres/ownership/owned-snapshot.ts';
import { CHANGED } from '../../../../src/store/postgres/sql/owned-snapshot.ts';

const IDS = Array.from({ length: 2600 }, (_, n) => `p${n}`);
const HEALTH = [true, 0, null, 1, 1, 1] as const;

/** Creates a database of one worker's projects that records the reads of changed ones. */
function databaseOf(fails: (asked: readonly string[]) => boolean) {
  const reads: (readonly string[])[] = [];
  let underWay = 0;
  let most = 0;
  const query = async (statement: Statement, values: readonly unknown[] = []) => {
    if (statement !== CHANGED) {
      const projects = IDS.map((id) => [id, `${id}.1`, ...HEALTH]);
      return [{ server_started_at: 'x', configured: 9, count: 0, oldest_at: null, projects }];
    }
    const asked = values[1] as readonly string[];
    reads.push(asked);
    underWay += 1;
    most = Math.max(most, underWay);
    await Promise.resolve();
    underWay -= 1;
    if (fails(asked)) throw new StoreError('io', 'no answer');
    return [{ projects: asked.map((id) => [`${id}.1`, [id, 1, ...HEALTH, {}, {}, null]]) }];
  };
  return {
    database: { query: query as never },
    reads,
    most: () => most,
  };
}

it('a snapshot reads 2600 changed projects in 11 batches, 4 at a time, and unchanged ones not again', async () => {
  const { database, reads, most } = databaseOf(() => false);
  const read = createOwnedSnapshot(database, 'w');
  const { projects } = await read();
  expect(projects.map(({ project }) => project).toSorted()).toEqual(IDS.toSorted());
  expect(reads.length).toBe(11);
  expect(most()).toBe(4);
  await read();
  expect(reads.length).toBe(11);
});

it('a snapshot after a failed one reads only the batch that failed', async () => {
  let isFailing = true;
  const { database, reads } = databaseOf((asked) => isFailing && asked.includes('p600'));
  const read = createOwnedSnapshot(database, 'w');
  await expect(read()).rejects.toThrow('no answer');
  isFailing = false;
  reads.length = 0;
  const { projects } = await read();
  expect(projects.length).toBe(IDS.length);
  expect(reads).toEqual([IDS.slice(500, 750)]);
});

import { setTimeout as sleep } from 'node:timers/promises';
import type { TransitionRow } from '../monitor/ports/store.ts';
import type { Context } from './command.ts';
import { newestTransitionId, readTransitionsAfter } from './transition-pages.ts';
import type { QueryOptions } from './options.ts';
import { toQuery, withReader, type View } from './query.ts';
import { createTable } from './output/table.ts';
import { toJsonLine } from './output/json.ts';

const POLL_INTERVAL_MS = 1000;
const FIRST_ROWS = 10;

/**
 * Prints the newest transitions, oldest first, and then each new one once, until a signal ends the process.
 * @throws {StoreError} also when the store is replaced
 */
export async function follow(
  view: Pick<View<TransitionRow>, 'columns' | 'toJson'>,
  options: QueryOptions,
  context: Context,
): Promise<never> {
  const { stdout } = context;
  const table = createTable(view.columns, stdout);
  const print = (rows: readonly TransitionRow[]) =>
    stdout.writeLines(
      options.json ? rows.map((row) => toJsonLine(view.toJson(row))) : table.lines(rows),
    );
  return await withReader(options, context, async ({ reader }) => {
    const query = toQuery(options, context);
    let last = await newestTransitionId(reader);
    const newest = await reader.transitions({ ...query, limit: query.limit ?? FIRST_ROWS });
    // Transitions recorded between the two queries are printed by the loop below.
    await print(newest.filter(({ transitionId }) => transitionId <= last).toReversed());
    while (true) {
      await sleep(POLL_INTERVAL_MS);
      for await (const page of readTransitionsAfter(reader, last, query)) {
        if (page.rows.length > 0) await print(page.rows);
        last = page.last;
      }
    }
  });
}

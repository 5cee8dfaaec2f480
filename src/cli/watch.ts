import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from './command.ts';
import { UsageError } from './outcome.ts';
import type { QueryOptions } from './options.ts';
import { toQuery, withReader, type View } from './query.ts';
import { createTable } from './output/table.ts';
import { truncate, formatTime } from './output/text.ts';

/** Terminal codes that overwrite the screen line by line, so that it does not flicker. */
const HOME = '\u001b[H';
const CLEAR_REST_OF_LINE = '\u001b[K';
const CLEAR_REST_OF_SCREEN = '\u001b[J';
const CLEAR = '\u001b[2J';

interface WatchOptions extends QueryOptions {
  readonly intervalMs: number;
}

/**
 * Shows the newest rows that fit on the terminal and refreshes them, until a signal ends the process.
 * @throws {UsageError} without a terminal
 */
export async function watch<Row>(
  view: View<Row>,
  options: WatchOptions,
  context: Context,
): Promise<never> {
  const { stdout, clock } = context;
  if (stdout.width === undefined || options.json) {
    throw new UsageError('--watch needs a terminal and cannot be used with --json');
  }
  return await withReader(options, context, async (source) => {
    const read = view.open(source);
    await stdout.write(CLEAR);
    while (true) {
      const { width = 80, height = 24, color } = stdout;
      // Three lines hold the title, the header and the cursor.
      const room = Math.max(1, height - 3);
      const limit = Math.min(options.limit ?? room, room);
      const rows = await read({ ...toQuery(options, context), limit });
      const title = `${formatTime(clock.now())}  the newest ${rows.length} ${view.noun}, every ${options.intervalMs / 1000} s`;
      const lines = [
        truncate(title, width),
        ...createTable(view.columns, { width, color }).lines(rows),
      ];
      const frame = lines.map((line) => `${line}${CLEAR_REST_OF_LINE}\n`).join('');
      await stdout.write(`${HOME}${frame}${CLEAR_REST_OF_SCREEN}`);
      await sleep(options.intervalMs);
    }
  });
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreReader, TransitionRow } from '../../monitor/ports/store.ts';
import { transitionFields } from '../../rows/fields.ts';
import type { Context, Define } from '../command.ts';
import { addHistoryOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { formatTime } from '../output.ts';
import { type Format, printNewest, toQuery, withReader } from '../query.ts';
import { createTable, statusColor, toJsonLine } from '../table.ts';

const FORMAT: Format<TransitionRow> = {
  noun: 'transitions',
  columns: [
    ['transition_id', (row) => String(row.transitionId)],
    ['time', (row) => formatTime(row.at)],
    ['from', (row) => row.from],
    ['to', (row) => row.to, { color: (row) => statusColor(row.to) }],
    ['project', (row) => row.project],
    ['kind', (row) => row.kind],
    ['id', (row) => row.id],
  ],
  toJson: transitionFields,
};

interface TransitionOptions extends Options {
  readonly follow?: true;
}

const HELP = `
--follow prints the newest 10 changes (or --limit), oldest first, and then each new one as it is recorded. With
--json it prints one object a line.

Examples:
  evalwatch transitions --since 24h
  evalwatch transitions --project checkout-bot --follow
  evalwatch transitions --follow --json | jq 'select(.to == "FAILED")'`;

export const defineTransitions: Define = (command, run) => {
  command.option('--follow', 'keep printing new changes as they are recorded');
  addHistoryOptions(command)
    .addOption(limitOption('at most this many rows, the newest (default: 100)'))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(
      run((context, options: TransitionOptions) =>
        options.follow
          ? follow(options, context)
          : printNewest((reader, query) => reader.transitions(query), FORMAT, options, context),
      ),
    );
};

const POLL_INTERVAL_MS = 1000;
const FIRST_ROWS = 10;
/** Maximum number of rows that are read at a time. */
const PAGE_SIZE = 5000;
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Prints the newest transitions, oldest first, and then each new one once, until a signal ends the process.
 * @throws {StoreError} also when the store is replaced
 */
async function follow(options: Options, context: Context): Promise<never> {
  const { stdout } = context;
  const table = createTable(FORMAT.columns, stdout);
  const print = async (rows: readonly TransitionRow[]) =>
    await stdout.write(
      options.json ? rows.map((row) => toJsonLine(transitionFields(row))).join('') : table(rows),
    );
  return await withReader(options, context, async ({ reader }) => {
    const { project, experiment, since, limit = FIRST_ROWS } = toQuery(options, context);
    let last = (await eventsAfter(reader, Number.MAX_SAFE_INTEGER)).end.transition;
    const newest = await reader.transitions({ project, experiment, since, limit });
    // Transitions recorded between the two queries are printed by the loop below.
    await print(newest.filter(({ transitionId }) => transitionId <= last).toReversed());
    while (true) {
      const { transitions } = await eventsAfter(reader, last);
      last = transitions.at(-1)?.transitionId ?? last;
      const rows = transitions.filter(
        (row) =>
          (project === undefined || row.project === project) &&
          (experiment === undefined ||
            (row.kind === 'prompt' && (row.experiment ?? '') === experiment)) &&
          (since === undefined || row.at >= since),
      );
      if (rows.length > 0) await print(rows);
      if (transitions.length < PAGE_SIZE) await sleep(POLL_INTERVAL_MS);
    }
  });
}

/** Reads transitions in the order in which they become visible, which is not quite that of their numbers, and nothing else. */
function eventsAfter(reader: StoreReader, transition: number) {
  return reader.events({ transition, settlement: NEVER, finish: NEVER }, PAGE_SIZE);
}

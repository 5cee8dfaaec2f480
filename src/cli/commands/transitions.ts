import type { RowQuery, StoreReader } from '../../monitor/ports/store.ts';
import { transitionFields } from '../../rows/fields.ts';
import type { TransitionFields } from '../../rows/schema.ts';
import type { Define } from '../command.ts';
import { type Followed, follow } from '../follow.ts';
import { addMoveOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { formatTime } from '../output.ts';
import { type Format, printNewest } from '../query.ts';
import { statusColor } from '../table.ts';

const FORMAT: Format<TransitionFields> = {
  noun: 'transitions',
  columns: [
    ['transition_id', (row) => String(row.transition_id)],
    ['time', (row) => formatTime(row.time)],
    ['from', (row) => row.from],
    ['to', (row) => row.to, { color: (row) => statusColor(row.to) }],
    ['project', (row) => row.project],
    ['kind', (row) => ('prompt_id' in row ? 'prompt' : 'dataset')],
    ['id', (row) => ('prompt_id' in row ? row.prompt_id : row.dataset_id)],
  ],
};

const FOLLOWED: Followed<TransitionFields> = {
  format: FORMAT,
  newest,
  number: 'transition',
  recorded: ({ transitions }) => [
    transitions.map(transitionFields),
    transitions.at(-1)?.transitionId,
  ],
};

async function newest(reader: StoreReader, query: RowQuery): Promise<readonly TransitionFields[]> {
  return (await reader.transitions(query)).map(transitionFields);
}

const HELP = `
--follow prints the newest 10 changes (or --limit), oldest first, and then each new one as it is recorded. With
--json it prints one object a line.

Examples:
  evalwatch transitions --since 24h
  evalwatch transitions --project checkout-bot --follow
  evalwatch transitions --follow --json | jq --unbuffered 'select(.to == "FAILED")'`;

export const defineTransitions: Define = (command, run) => {
  command.option('--follow', 'keep printing new changes as they are recorded');
  addMoveOptions(command)
    .addOption(limitOption('at most this many rows, the newest (default: 100)'))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(
      run((context, options: Options) =>
        options.follow
          ? follow(FOLLOWED, options, context)
          : printNewest(newest, FORMAT, options, context),
      ),
    );
};

import type { TransitionRow } from '../../monitor/ports/store.ts';
import { transitionFields } from '../../rows/fields.ts';
import type { Action, Register } from '../command.ts';
import { follow } from '../follow.ts';
import { addQueryOptions, type QueryOptions } from '../options.ts';
import { queryAction, type View } from '../query.ts';
import { statusColor } from '../output/status-color.ts';
import { formatTime } from '../output/text.ts';

const view: View<TransitionRow> = {
  noun: 'transitions',
  open:
    ({ reader }) =>
    (query) =>
      reader.transitions(query),
  columns: [
    { name: 'transition_id', cell: (row) => String(row.transitionId) },
    { name: 'time', cell: (row) => formatTime(row.at) },
    { name: 'from', cell: (row) => row.from },
    { name: 'to', cell: (row) => row.to, color: (row) => statusColor(row.to) },
    { name: 'project', cell: (row) => row.project, isTruncatable: true },
    { name: 'kind', cell: (row) => row.kind },
    { name: 'id', cell: (row) => row.id, isTruncatable: true },
  ],
  toJson: transitionFields,
};

interface TransitionOptions extends QueryOptions {
  readonly follow?: true;
}

const HELP = `
--follow prints the newest 10 changes (or --limit), oldest first, and then each new one as it is recorded. With
--json it prints one object a line.

Examples:
  evalwatch transitions --since 24h
  evalwatch transitions --project checkout-bot --follow
  evalwatch transitions --follow --json | jq 'select(.to == "FAILED")'`;

export const registerTransitions: Register = (program, withContext) => {
  addQueryOptions(
    program
      .command('transitions')
      .description('Print the status changes of prompts and datasets, newest first')
      .option('--follow', 'keep printing new changes as they are recorded'),
  )
    .addHelpText('after', HELP)
    .action(withContext(transitions));
};

const print = queryAction(view);

const transitions: Action<TransitionOptions> = async (options, context) =>
  options.follow ? await follow(view, options, context) : await print(options, context);

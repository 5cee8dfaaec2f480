import type { StatusRow } from '../../monitor/ports/store.ts';
import { promptFields } from '../../rows/fields.ts';
import type { Action, Register } from '../command.ts';
import { addQueryOptions, interval, statusOption, type QueryOptions } from '../options.ts';
import { queryAction, type View } from '../query.ts';
import { statusColor } from '../output/status-color.ts';
import { formatTime } from '../output/text.ts';
import { watch } from '../watch.ts';

const view: View<StatusRow> = {
  noun: 'prompts',
  read: (reader, query) => reader.statuses(query),
  columns: [
    { name: 'project', cell: (row) => row.project, isTruncatable: true },
    { name: 'prompt_id', cell: (row) => row.promptId, isTruncatable: true },
    { name: 'status', cell: (row) => row.status, color: (row) => statusColor(row.status) },
    { name: 'since', cell: (row) => formatTime(row.since) },
    { name: 'missing', cell: (row) => String(row.missing) },
    { name: 'prompt_name', cell: (row) => row.promptName, isTruncatable: true },
  ],
  toJson: promptFields,
};

interface StatusOptions extends QueryOptions {
  /** Refresh interval, ms; true for the default. */
  readonly watch?: number | true;
}

const HELP = `
Examples:
  evalwatch status --status failed
  evalwatch status --project checkout-bot --since 1h --json
  evalwatch status --watch 5s`;

export const registerStatus: Register = (program, withContext) => {
  addQueryOptions(
    program
      .command('status')
      .description('Print the status of each prompt that is not gone, newest change first')
      .addOption(statusOption())
      .option(
        '--watch [duration]',
        'refresh the table on the terminal, at this interval (default: 2s)',
        interval,
      ),
  )
    .addHelpText('after', HELP)
    .action(withContext(status));
};

const print = queryAction(view);

const status: Action<StatusOptions> = async (options, context) => {
  if (options.watch === undefined) return await print(options, context);
  return await watch(
    view,
    { ...options, intervalMs: options.watch === true ? 2000 : options.watch },
    context,
  );
};

import type { FailureRow } from '../../monitor/ports/store.ts';
import { failureFields, isoTime } from '../../rows/fields.ts';
import type { Register } from '../command.ts';
import { addQueryOptions, causeOption, csvOption } from '../options.ts';
import { createCsv, CSV_HELP } from '../output/csv.ts';
import { queryAction, type View } from '../query.ts';
import { formatTime } from '../output/text.ts';

const view: View<FailureRow> = {
  noun: 'failures',
  open:
    ({ reader }) =>
    (query) =>
      reader.failures(query),
  columns: [
    { name: 'transition_id', cell: (row) => String(row.transitionId) },
    { name: 'time', cell: (row) => formatTime(row.at) },
    { name: 'project', cell: (row) => row.project, isTruncatable: true },
    { name: 'prompt_id', cell: (row) => row.promptId, isTruncatable: true },
    { name: 'prompt_name', cell: (row) => row.promptName, isTruncatable: true, isOptional: true },
    { name: 'settled', cell: (row) => (row.settlement === undefined ? 'no' : 'yes') },
    { name: 'reason', cell: (row) => row.settlement?.reason },
    {
      name: 'error_id',
      cell: (row) => row.settlement?.errorInfo?.error_id ?? undefined,
      isTruncatable: true,
    },
    {
      name: 'error_msg',
      cell: (row) => row.settlement?.errorInfo?.error_msg ?? undefined,
      isTruncatable: true,
    },
  ],
  toJson: failureFields,
  csv: createCsv([
    { name: 'transition_id', cell: (row) => row.transitionId },
    { name: 'time', cell: (row) => isoTime(row.at) },
    { name: 'project', cell: (row) => row.project },
    { name: 'prompt_id', cell: (row) => row.promptId },
    { name: 'prompt_name', cell: (row) => row.promptName },
    { name: 'settled', cell: (row) => String(row.settlement !== undefined) },
    { name: 'reason', cell: (row) => row.settlement?.reason },
    { name: 'error_id', cell: (row) => row.settlement?.errorInfo?.error_id ?? undefined },
    { name: 'error_msg', cell: (row) => row.settlement?.errorInfo?.error_msg ?? undefined },
    { name: 'error_msg_truncated', cell: (row) => String(failureFields(row).error_msg_truncated) },
    { name: 'cause', cell: (row) => row.cause },
  ]),
};

const HELP = `
${CSV_HELP}

Examples:
  evalwatch failures --since 24h
  evalwatch failures --project checkout-bot --limit 5 --json
  evalwatch failures --since 7d --format csv > failures.csv
  evalwatch failures --cause 1842023dd3c6ad55`;

export const registerFailures: Register = (program, withContext) => {
  addQueryOptions(
    program
      .command('failures')
      .description('Print each failure of a prompt with its error_info, newest first')
      .addOption(causeOption())
      .addOption(csvOption()),
  )
    .addHelpText('after', HELP)
    .action(withContext(queryAction(view)));
};

import type { StatusRow } from '../monitor/ports.ts';
import { statusFields } from '../monitor/row-fields.ts';
import type { Register } from './command.ts';
import { addQueryOptions, promptStatus } from './options.ts';
import { queryAction, type View } from './query.ts';
import { timeText } from './text.ts';

const view: View<StatusRow> = {
  noun: 'prompts',
  read: (reader, query) => reader.statuses(query),
  columns: [
    { name: 'project', cell: (row) => row.project, cuttable: true },
    { name: 'prompt_id', cell: (row) => row.promptId, cuttable: true },
    { name: 'status', cell: (row) => row.status },
    { name: 'since', cell: (row) => timeText(row.since) },
    { name: 'missing', cell: (row) => String(row.missing) },
    { name: 'prompt_name', cell: (row) => row.promptName, cuttable: true },
  ],
  toJson: statusFields,
};

export const registerStatus: Register = (program, act) => {
  addQueryOptions(
    program
      .command('status')
      .description('Print the status of every prompt that is not gone, newest change first')
      .option('--status <status>', 'in this status only', promptStatus),
  ).action(act(queryAction(view)));
};

import type { TransitionRow } from '../monitor/ports.ts';
import { transitionFields } from '../monitor/row-fields.ts';
import type { Register } from './command.ts';
import { addQueryOptions } from './options.ts';
import { queryAction, type View } from './query.ts';
import { timeText } from './text.ts';

const view: View<TransitionRow> = {
  noun: 'transitions',
  read: (reader, query) => reader.transitions(query),
  columns: [
    { name: 'transition_id', cell: (row) => String(row.transitionId) },
    { name: 'time', cell: (row) => timeText(row.at) },
    { name: 'from', cell: (row) => row.from },
    { name: 'to', cell: (row) => row.to },
    { name: 'project', cell: (row) => row.project, cuttable: true },
    { name: 'kind', cell: (row) => row.kind },
    { name: 'id', cell: (row) => row.id, cuttable: true },
  ],
  toJson: transitionFields,
};

export const registerTransitions: Register = (program, act) => {
  addQueryOptions(
    program
      .command('transitions')
      .description('Print the recorded moves of prompts and datasets, newest first'),
  ).action(act(queryAction(view)));
};

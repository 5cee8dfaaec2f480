import { formatDuration } from '../../domain/options.ts';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import { experimentFields } from '../../rows/fields.ts';
import type { ExperimentFields } from '../../rows/schema.ts';
import type { Define } from '../command.ts';
import { addHistoryOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { timeText } from '../output.ts';
import { type Column, statusColor } from '../table.ts';
import { type Format, printNewest } from '../query.ts';

const FORMAT: Format<ExperimentFields> = {
  noun: 'experiments',
  columns: [
    ['project', (row) => row.project],
    [
      'state',
      (row) => row.state,
      { color: (row) => (row.state === 'running' ? 'cyan' : undefined) },
    ],
    ...PROMPT_STATUSES.map((status): Column<ExperimentFields> => {
      const color = ({ prompts }: ExperimentFields) =>
        prompts[status] === 0 ? undefined : statusColor(status);
      return [status, ({ prompts }) => String(prompts[status]), { color }];
    }),
    ['first_move', (row) => timeText(row.first_move), { isOptional: true }],
    ['last_move', (row) => timeText(row.last_move)],
    ['took', tookText],
    ['experiment', (row) => row.experiment],
  ],
};

function tookText({ duration_seconds: seconds }: ExperimentFields): string | undefined {
  return seconds ? formatDuration(Math.floor(seconds) * 1000, 2) : undefined;
}

const HELP = `
An experiment is running while one of its prompts is PENDING or RUNNING. It has finished when two polls in a row show
none; between them, and if evalwatch saw no prompt of it move, it has ended. A prompt that comes or runs again reopens it.
The columns count its prompts by status, without those that are gone. --since compares with its last move.

Examples:
  evalwatch experiments --project checkout-bot
  evalwatch experiments --since 24h --json
  evalwatch failures --project checkout-bot --experiment nightly-42`;

export const defineExperiments: Define = (command, run) => {
  addHistoryOptions(command)
    .addOption(limitOption('at most this many experiments, the last ones (default: 100)'))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(
      run((context, options: Options) =>
        printNewest(
          async (reader, query) => (await reader.experiments(query)).map(experimentFields),
          FORMAT,
          options,
          context,
        ),
      ),
    );
};

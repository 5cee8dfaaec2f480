import { tookMs } from '../../domain/experiment.ts';
import { formatDuration } from '../../domain/options.ts';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import type { ExperimentRow } from '../../monitor/ports/store.ts';
import { experimentFields } from '../../rows/fields.ts';
import type { Define } from '../command.ts';
import { addHistoryOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { formatTime } from '../output.ts';
import { type Column, statusColor } from '../table.ts';
import { type Format, printNewest } from '../query.ts';

const FORMAT: Format<ExperimentRow> = {
  noun: 'experiments',
  columns: [
    ['project', (row) => row.project],
    [
      'state',
      (row) => row.state,
      { color: (row) => (row.state === 'running' ? 'cyan' : undefined) },
    ],
    ...PROMPT_STATUSES.map((status): Column<ExperimentRow> => {
      const color = ({ counts }: ExperimentRow) =>
        counts[status] === 0 ? undefined : statusColor(status);
      return [status, ({ counts }) => String(counts[status]), { color }];
    }),
    ['first_move', (row) => timeText(row.startedAt), { isOptional: true }],
    ['last_move', (row) => timeText(row.movedAt)],
    ['took', tookText],
    ['experiment', (row) => row.experiment],
  ],
  toJson: experimentFields,
};

function timeText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatTime(ms);
}

function tookText({ state, startedAt, endedAt }: ExperimentRow): string | undefined {
  if (state !== 'finished' || startedAt === undefined || endedAt === undefined) return undefined;
  const ms = tookMs({ startedAt, endedAt });
  return ms === 0 ? undefined : formatDuration(ms - (ms % 1000), 2);
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
        printNewest((reader, query) => reader.experiments(query), FORMAT, options, context),
      ),
    );
};

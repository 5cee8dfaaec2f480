import { InvalidArgumentError, Option } from 'commander';
import type { FailureRow } from '../../monitor/ports/store.ts';
import { failureFields, isoTime } from '../../rows/fields.ts';
import type { Define } from '../command.ts';
import { addHistoryOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { formatTime } from '../output.ts';
import { type Format, printNewest } from '../query.ts';
import { CSV_HELP } from '../table.ts';

const FORMAT: Format<FailureRow> = {
  noun: 'failures',
  columns: [
    ['transition_id', (row) => String(row.transitionId)],
    ['time', (row) => formatTime(row.at)],
    ['project', (row) => row.project],
    ['prompt_id', (row) => row.promptId],
    ['prompt_name', (row) => row.promptName, { isOptional: true }],
    ['settled', (row) => (row.settlement === undefined ? 'no' : 'yes')],
    ['reason', (row) => row.settlement?.reason],
    ['error_id', (row) => row.settlement?.errorInfo?.error_id ?? undefined],
    ['error_msg', (row) => row.settlement?.errorInfo?.error_msg ?? undefined],
  ],
  toJson: failureFields,
  csv: [
    ['transition_id', (row) => row.transitionId],
    ['time', (row) => isoTime(row.at)],
    ['project', (row) => row.project],
    ['prompt_id', (row) => row.promptId],
    ['prompt_name', (row) => row.promptName],
    ['settled', (row) => String(row.settlement !== undefined)],
    ['reason', (row) => row.settlement?.reason],
    ['error_id', (row) => row.settlement?.errorInfo?.error_id ?? undefined],
    ['error_msg', (row) => row.settlement?.errorInfo?.error_msg ?? undefined],
    ['error_msg_truncated', (row) => String(failureFields(row).error_msg_truncated)],
    ['cause', (row) => row.cause],
    ['experiment', (row) => row.experiment],
  ],
};

const HELP = `
${CSV_HELP}

Examples:
  evalwatch failures --since 24h
  evalwatch failures --project checkout-bot --limit 5 --json
  evalwatch failures --since 7d --limit 10000 --format csv > failures.csv
  evalwatch failures --cause 1842023dd3c6ad55`;

export const defineFailures: Define = (command, run) => {
  command
    .addOption(new Option('--cause <id>', 'only failures with this cause').argParser(causeId))
    .addOption(
      new Option('--format <format>', 'print CSV instead of a table')
        .choices(['csv'])
        .conflicts('json'),
    );
  addHistoryOptions(command)
    .addOption(limitOption('at most this many rows, the newest (default: 100)'))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(
      run((context, options: Options) =>
        printNewest((reader, query) => reader.failures(query), FORMAT, options, context),
      ),
    );
};

function causeId(text: string): string {
  if (/^[0-9a-f]{16}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be 16 hexadecimal digits, as causes prints them.');
}

import { InvalidArgumentError, Option } from 'commander';
import type { RowQuery, StoreReader } from '../../monitor/ports/store.ts';
import { failureFields } from '../../rows/fields.ts';
import type { FailureFields } from '../../rows/schema.ts';
import type { Define } from '../command.ts';
import { type Followed, follow } from '../follow.ts';
import { addMoveOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { formatTime } from '../output.ts';
import { type Format, printNewest } from '../query.ts';
import { CSV_HELP } from '../table.ts';

const FORMAT: Format<FailureFields> = {
  noun: 'failures',
  ifNone: '; prompts that had failed before the first poll have none',
  columns: [
    ['transition_id', (row) => String(row.transition_id)],
    ['time', (row) => formatTime(row.time)],
    ['project', (row) => row.project],
    ['prompt_id', (row) => row.prompt_id],
    ['prompt_name', (row) => row.prompt_name ?? undefined, { isOptional: true }],
    ['settled', (row) => (row.settled ? 'yes' : 'no')],
    ['reason', (row) => row.reason ?? undefined],
    ['error_id', (row) => row.error_info?.error_id ?? undefined],
    ['error_msg', (row) => row.error_info?.error_msg ?? undefined],
  ],
  csv: {
    columns:
      'transition_id,time,project,prompt_id,prompt_name,settled,reason,error_id,error_msg,error_msg_truncated,cause,experiment',
    toCells: (row) => ({ ...row, ...row.error_info }),
  },
};

const FOLLOWED: Followed<FailureFields> = {
  format: FORMAT,
  newest: async (reader, query) => {
    const rows = await newest(reader, query);
    // Those that are pending come once they are settled.
    return rows.filter(({ settled }) => settled);
  },
  number: 'settlement',
  recorded: ({ settled }) => [settled.map(failureFields), settled.at(-1)?.settlementId],
};

async function newest(reader: StoreReader, query: RowQuery): Promise<readonly FailureFields[]> {
  return (await reader.failures(query)).map(failureFields);
}

const HELP = `
--follow prints the newest 10 failures (or --limit), oldest first, and then each one once its error_info is known, or is
not to be had. With --json it prints one object a line.
${CSV_HELP}

Examples:
  evalwatch failures --since 24h
  evalwatch failures --project checkout-bot --limit 5 --json
  evalwatch failures --since 7d --limit 10000 --format csv > failures.csv
  evalwatch failures --cause 1842023dd3c6ad55
  evalwatch failures --follow --json | jq --unbuffered -r .prompt_id`;

export const defineFailures: Define = (command, run) => {
  command
    .option('--follow', 'keep printing failures as they are explained')
    .addOption(new Option('--cause <id>', 'only failures with this cause').argParser(causeId))
    .addOption(
      new Option('--format <format>', 'print CSV instead of a table')
        .choices(['csv'])
        .conflicts(['json', 'follow']),
    );
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

function causeId(text: string): string {
  if (/^[0-9a-f]{16}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('It must be 16 hexadecimal digits, as causes prints them.');
}

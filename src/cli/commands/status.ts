import { isStuck, type StateExpectation } from '../../domain/expectation.ts';
import { expectationIn, type StateExpectations } from '../../monitor/ports/expectations.ts';
import type { StatusRow } from '../../monitor/ports/store.ts';
import { promptFields } from '../../rows/fields.ts';
import type { Action, Register } from '../command.ts';
import { createExpectationsReader } from '../expectations.ts';
import { addQueryOptions, interval, statusOption, type QueryOptions } from '../options.ts';
import { queryAction, type View } from '../query.ts';
import { statusColor } from '../output/status-color.ts';
import { formatDuration, formatTime } from '../output/text.ts';
import { watch } from '../watch.ts';

interface PromptRow extends StatusRow {
  /** Time in the status so far, ms. */
  readonly heldMs: number;
  readonly expectations: StateExpectations | undefined;
  /** Undefined if the prompt does not wait, or nothing is known of its project. */
  readonly expectation: StateExpectation | undefined;
}

const view: View<PromptRow> = {
  noun: 'prompts',
  open: ({ reader, projects, clock }) => {
    const readExpectations = createExpectationsReader(reader, projects, clock);
    return async (query) => {
      const rows = await reader.statuses(query);
      const expectationsOf = await readExpectations(rows);
      const now = clock.now();
      return rows.map((row): PromptRow => {
        const expectations = expectationsOf(row.project);
        const expectation = expectationIn(row.status, expectations);
        return { ...row, heldMs: Math.max(0, now - row.since), expectations, expectation };
      });
    };
  },
  columns: [
    { name: 'project', cell: (row) => row.project, isTruncatable: true },
    { name: 'prompt_id', cell: (row) => row.promptId, isTruncatable: true },
    { name: 'status', cell: (row) => row.status, color: (row) => statusColor(row.status) },
    { name: 'since', cell: (row) => formatTime(row.since), isOptional: true },
    {
      name: 'for',
      cell: (row) => inTwoUnits(row.heldMs),
      color: (row) => (isStuck(row.heldMs, row.expectation) ? 'red' : undefined),
    },
    { name: 'usual', cell: ({ expectation }) => inTwoUnits(expectation?.typicalMs) },
    { name: 'limit', cell: ({ expectation }) => limitOf(expectation) },
    { name: 'missing', cell: (row) => String(row.missing) },
    { name: 'prompt_name', cell: (row) => row.promptName, isTruncatable: true },
  ],
  toJson: (row) => promptFields(row, row.expectations),
};

function limitOf(expectation: StateExpectation | undefined): string | undefined {
  return expectation?.source === 'off' ? 'off' : inTwoUnits(expectation?.limitMs);
}

function inTwoUnits(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatDuration(ms - (ms % 1000), 2);
}

interface StatusOptions extends QueryOptions {
  /** Refresh interval, ms; true for the default. */
  readonly watch?: number | true;
}

const HELP = `
For a prompt that is PENDING or RUNNING, the columns usual and limit say how long is usual and how long it may take.
The limit is learned from the project's own prompts or configured (expect). On a terminal with colours, a prompt beyond
its limit has its time in red.

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

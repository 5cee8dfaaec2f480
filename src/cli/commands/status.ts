import { formatDuration } from '../../domain/options.ts';
import type { ProjectConfig } from '../../config/config.ts';
import {
  isStuck,
  type StateExpectation,
  type ExpectationsOf,
  expectationIn,
  type StateExpectations,
} from '../../domain/limits.ts';
import { isUnfinished } from '../../domain/status.ts';
import type { StatusRow } from '../../monitor/ports/store.ts';
import { promptFields } from '../../rows/fields.ts';
import type { Context, Define } from '../command.ts';
import {
  addHistoryOptions,
  jsonOption,
  limitOption,
  type Options,
  promptOption,
  statusOption,
} from '../options.ts';
import { formatTime } from '../output.ts';
import { type Format, printRows, type Source, toQuery, withReader } from '../query.ts';
import { statusColor } from '../table.ts';

interface PromptRow extends StatusRow {
  /** Time in the status so far, ms. */
  readonly heldMs: number;
  readonly expectations: StateExpectations | undefined;
  /** Undefined if the prompt does not wait, or nothing is known of its project. */
  readonly expectation: StateExpectation | undefined;
}

const FORMAT: Format<PromptRow> = {
  noun: 'prompts',
  columns: [
    ['project', (row) => row.project],
    ['prompt_id', (row) => row.promptId],
    ['status', (row) => row.status, { color: (row) => statusColor(row.status) }],
    ['since', (row) => formatTime(row.since), { isOptional: true }],
    [
      'for',
      (row) => inTwoUnits(row.heldMs),
      { color: (row) => (isStuck(row.heldMs, row.expectation) ? 'red' : undefined) },
    ],
    ['usual', ({ expectation }) => inTwoUnits(expectation?.typicalMs)],
    ['limit', ({ expectation }) => limitOf(expectation)],
    ['missing', (row) => String(row.missing)],
    ['experiment', (row) => row.experiment, { isOptional: true }],
    ['prompt_name', (row) => row.promptName],
  ],
  toJson: (row) => promptFields(row, row.expectations),
};

function limitOf(expectation: StateExpectation | undefined): string | undefined {
  return expectation?.source === 'off' ? 'off' : inTwoUnits(expectation?.limitMs);
}

function inTwoUnits(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : formatDuration(ms - (ms % 1000), 2);
}

const HELP = `
For a prompt that is PENDING or RUNNING, the columns usual and limit say how long is usual and how long it may take.
The limit is learned from the project's own prompts or configured (expect). On a terminal with colours, a prompt beyond
its limit has its time in red.

Examples:
  evalwatch status --status failed
  evalwatch status --prompt prompt-000024
  evalwatch status --project checkout-bot --since 1h --json`;

export const defineStatus: Define = (command, run) => {
  command.addOption(statusOption());
  addHistoryOptions(command)
    .addOption(promptOption())
    .addOption(limitOption('at most this many rows, the newest'))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(run(status));
};

async function status(context: Context, options: Options): Promise<number> {
  const rows = await withReader(options, context, async (source) => {
    const found = await source.reader.statuses(toQuery(options, context));
    const expectationsOf = await readExpectations(found, source, context);
    const now = context.clock.now();
    return found.map((row): PromptRow => {
      const expectations = expectationsOf(row.project);
      const expectation = expectationIn(row.status, expectations);
      return { ...row, heldMs: Math.max(0, now - row.since), expectations, expectation };
    });
  });
  await printRows(rows, FORMAT, options, context);
  return 0;
}

/** Reads what is expected of the configured projects whose prompts wait in these rows. */
async function readExpectations(
  rows: readonly StatusRow[],
  { reader, projects }: Source,
  { clock }: Context,
): Promise<ExpectationsOf> {
  const ids = new Set(rows.flatMap((row) => (isUnfinished(row.status) ? [row.project] : [])));
  const waiting = new Map<string, ProjectConfig>();
  for (const project of projects) if (ids.has(project.id)) waiting.set(project.id, project);
  if (waiting.size === 0) return () => undefined;
  const [{ LearnedExpectations }, { maxIntervalOf }] = await Promise.all([
    import('../../monitor/expectations.ts'),
    import('../../schedule/cron.ts'),
  ]);
  const expectations = new LearnedExpectations({
    store: reader,
    clock,
    projects: () => waiting,
    maxIntervalMs: (id) => maxIntervalOf(waiting.get(id), clock.now()),
  });
  await expectations.refresh();
  return expectations.of;
}

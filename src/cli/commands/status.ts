import { formatDuration } from '../../domain/options.ts';
import type { ProjectConfig } from '../../config/config.ts';
import type { ExpectationsOf } from '../../domain/limits.ts';
import { isUnfinished } from '../../domain/status.ts';
import type { StatusRow } from '../../monitor/ports/store.ts';
import { promptFields } from '../../rows/fields.ts';
import type { PromptFields } from '../../rows/schema.ts';
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

/** @param now epoch ms: until when a prompt has been in its status */
function formatAt(now: number): Format<PromptFields> {
  const heldMs = ({ since }: PromptFields) => Math.max(0, now - Date.parse(since));
  const isStuck = (row: PromptFields) => heldMs(row) > 1000 * (row.limit_seconds ?? Infinity);
  return {
    noun: 'prompts',
    columns: [
      ['project', (row) => row.project],
      ['prompt_id', (row) => row.prompt_id],
      ['status', (row) => row.status, { color: (row) => statusColor(row.status) }],
      ['since', (row) => formatTime(row.since), { isOptional: true }],
      [
        'for',
        (row) => inTwoUnits(heldMs(row) / 1000),
        { color: (row) => (isStuck(row) ? 'red' : undefined) },
      ],
      ['usual', (row) => inTwoUnits(row.typical_seconds)],
      ['limit', (row) => (row.limit_source === 'off' ? 'off' : inTwoUnits(row.limit_seconds))],
      ['missing', (row) => String(row.missing)],
      ['experiment', (row) => row.experiment ?? undefined, { isOptional: true }],
      ['prompt_name', (row) => row.prompt_name ?? undefined],
    ],
  };
}

function inTwoUnits(seconds: number | null): string | undefined {
  return seconds === null ? undefined : formatDuration(Math.floor(seconds) * 1000, 2);
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
    return found.map((row) => promptFields(row, expectationsOf(row.project)));
  });
  await printRows(rows, formatAt(context.clock.now()), options, context);
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

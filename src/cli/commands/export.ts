import { Option } from 'commander';
import { transitionFields } from '../../rows/fields.ts';
import type { Context, Define } from '../command.ts';
import { addMoveOptions, type Options } from '../options.ts';
import { toQuery, withReader } from '../query.ts';
import { CSV_HELP, csvHeader, csvRows, toJsonLine } from '../table.ts';

const COLUMNS = 'transition_id,time,project,kind,id,from,to,experiment';

/** Maximum number of rows in memory. */
const PAGE_SIZE = 5000;

const HELP = `
${CSV_HELP}
NDJSON is for programs: one JSON object a line, every value exact.

Examples:
  evalwatch export --since 7d --format csv > week.csv
  evalwatch export --project checkout-bot | jq 'select(.to == "FAILED")'`;

export const defineExport: Define = (command, run) => {
  addMoveOptions(command)
    .addOption(
      new Option('--format <format>', 'output format').choices(['ndjson', 'csv']).default('ndjson'),
    )
    .addHelpText('after', HELP)
    .action(run(exportTransitions));
};

async function exportTransitions(context: Context, options: Options): Promise<number> {
  const { stdout } = context;
  const isCsv = options.format === 'csv';
  const query = toQuery(options, context);
  await withReader(options, context, async ({ reader }) => {
    if (isCsv) await stdout.write(csvHeader(COLUMNS));
    let afterTransition = 0;
    while (true) {
      const rows = await reader.transitions({
        ...query,
        order: 'oldest',
        afterTransition,
        limit: PAGE_SIZE,
      });
      const last = rows.at(-1);
      if (last === undefined) return;
      afterTransition = last.transitionId;
      await stdout.write(
        isCsv
          ? csvRows(
              rows.map((row) => ({ ...transitionFields(row), kind: row.kind, id: row.id })),
              COLUMNS,
            )
          : rows.map((row) => toJsonLine(transitionFields(row))).join(''),
      );
    }
  });
  return 0;
}

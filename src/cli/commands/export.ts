import { Option } from 'commander';
import { resolveFromUser } from '../../config/environment.ts';
import type { StoreReader, TransitionRow } from '../../monitor/ports/store.ts';
import { isoTime, transitionFields } from '../../rows/fields.ts';
import type { Action, Register } from '../command.ts';
import { createCsv, CSV_HELP } from '../output/csv.ts';
import { toJsonLine } from '../output/json.ts';
import { readTransitionsAfter, type TransitionFilter } from '../transition-pages.ts';
import { addHistoryOptions, type HistoryOptions } from '../options.ts';
import { isSqlite } from '../../store/open.ts';
import { toQuery, withReader } from '../query.ts';

const FORMATS = {
  ndjson: {
    header: '',
    line: (row: TransitionRow) => `${toJsonLine(transitionFields(row))}\n`,
  },
  csv: createCsv<TransitionRow>([
    { name: 'transition_id', cell: (row) => row.transitionId },
    { name: 'time', cell: (row) => isoTime(row.at) },
    { name: 'project', cell: (row) => row.project },
    { name: 'kind', cell: (row) => row.kind },
    { name: 'id', cell: (row) => row.id },
    { name: 'from', cell: (row) => row.from },
    { name: 'to', cell: (row) => row.to },
  ]),
} as const;

interface ExportOptions extends HistoryOptions {
  readonly format: keyof typeof FORMATS;
  readonly output?: string;
  readonly force?: true;
}

const HELP = `
${CSV_HELP} NDJSON is for programs: one
JSON object a line, with JSON's own escapes, so that every value is exact.

Examples:
  evalwatch export --since 7d --format csv --output week.csv
  evalwatch export --project checkout-bot | jq 'select(.to == "FAILED")'`;

export const registerExport: Register = (program, withContext) => {
  addHistoryOptions(
    program
      .command('export')
      .description('Write the status changes of prompts and datasets to a file, oldest first'),
  )
    .addOption(
      new Option('--format <format>', 'output format')
        .choices(Object.keys(FORMATS))
        .default('ndjson'),
    )
    .option('--output <file>', 'file to write (default: stdout, like -)')
    .option('--force', 'replace an existing file')
    .addHelpText('after', HELP)
    .action(withContext(exportTransitions));
};

const exportTransitions: Action<ExportOptions> = async (options, context) => {
  const { format, output, force } = options;
  await withReader(options, context, async ({ reader, store }) => {
    const chunks = toChunks(reader, toQuery(options, context), format);
    if (output === undefined || output === '-') {
      for await (const chunk of chunks) await context.stdout.write(chunk);
      return;
    }
    const [{ writeWhole }, { assertNotOwn }] = await Promise.all([
      import('../../store/sqlite/file/whole-file.ts'),
      import('../../store/sqlite/file/own-files.ts'),
    ]);
    const target = resolveFromUser(output, context.env);
    if (isSqlite(store)) await assertNotOwn(store.path, target);
    await writeWhole(target, force ?? false, async ({ file }) => {
      for await (const chunk of chunks) await file.appendFile(chunk);
    });
  });
  return 0;
};

async function* toChunks(
  reader: StoreReader,
  filter: TransitionFilter,
  format: ExportOptions['format'],
): AsyncGenerator<string> {
  const { header, line } = FORMATS[format];
  if (header !== '') yield header;
  for await (const { rows } of readTransitionsAfter(reader, 0, filter)) {
    if (rows.length > 0) yield rows.map(line).join('');
  }
}

import { timeOf } from '../../domain/options.ts';
import { causeFields, otherCausesFields } from '../../rows/fields.ts';
import type { CauseFields } from '../../rows/schema.ts';
import type { Define } from '../command.ts';
import { addHistoryOptions, jsonOption, limitOption, type Options } from '../options.ts';
import { timeText } from '../output.ts';
import { type Format, printRows, withReader } from '../query.ts';

const FORMAT: Format<CauseFields> = {
  noun: 'causes',
  columns: [
    ['count', (row) => String(row.count)],
    ['projects', (row) => row.projects?.toString()],
    [
      'new',
      ({ is_new }) => (is_new === null ? undefined : is_new ? 'yes' : 'no'),
      { color: (row) => (row.is_new ? 'yellow' : undefined) },
    ],
    ['first_seen', (row) => timeText(row.first_seen), { isOptional: true }],
    ['last_seen', (row) => timeText(row.last_seen)],
    ['cause', (row) => row.cause],
    ['error_id', (row) => row.error_id ?? undefined],
    ['shape', (row) => row.shape || undefined, { isOptional: true }],
    ['last_error_msg', (row) => row.last_error_msg ?? undefined],
  ],
};

const HELP = `
Failures have the same cause if they have the same error_id, and the same error_msg apart from what varies, such as
numbers, names and quoted text. The shape is the error_msg with <*> for what varies; last_error_msg is that of the last
failure. A terminal that is too narrow for all columns shows the message without its shape. A cause is new if the store
has no earlier failure with it. The row other counts the failures of the causes beyond --limit.

Examples:
  evalwatch causes
  evalwatch causes --project checkout-bot --since 1h --json
  evalwatch failures --cause 1842023dd3c6ad55`;

/** The options with their defaults. */
type CauseOptions = Options & { readonly limit: number };

export const defineCauses: Define = (command, run) => {
  addHistoryOptions(command, [{ agoMs: 86_400_000 }, '24h'])
    .addOption(limitOption('at most this many causes').default(100))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(
      run(async (context, options: CauseOptions) => {
        const { project, experiment, limit } = options;
        const since = timeOf(options.since, context.clock.now()) ?? 0;
        const { causes, others } = await withReader(options, context, ({ reader }) =>
          reader.causes({ project, experiment, since, limit }),
        );
        const rest = others.count === 0 ? [] : [otherCausesFields(others.count)];
        await printRows([...causes.map(causeFields), ...rest], FORMAT, options, context);
        return 0;
      }),
    );
};

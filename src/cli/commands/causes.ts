import type { CauseList } from '../../monitor/ports/store.ts';
import { causeFields, otherCausesFields } from '../../rows/fields.ts';
import type { CauseFields } from '../../rows/schema.ts';
import type { Register } from '../command.ts';
import {
  addStoreOptions,
  jsonOption,
  limitOption,
  projectOption,
  sinceOption,
} from '../options.ts';
import { queryAction, type View } from '../query.ts';
import { formatTime } from '../output/text.ts';

const DEFAULT_SINCE = { ms: 86_400_000, text: '24h' };
const DEFAULT_LIMIT = 100;

const view: View<CauseFields> = {
  noun: 'causes',
  open:
    ({ reader, clock }) =>
    async ({ project, since = clock.now() - DEFAULT_SINCE.ms, limit = DEFAULT_LIMIT }) =>
      toRows(await reader.causes({ project, since, limit })),
  columns: [
    { name: 'count', cell: (row) => String(row.count) },
    { name: 'projects', cell: (row) => row.projects?.toString() },
    {
      name: 'new',
      cell: ({ is_new }) => (is_new === null ? undefined : is_new ? 'yes' : 'no'),
      color: (row) => (row.is_new ? 'yellow' : undefined),
    },
    { name: 'first_seen', cell: (row) => timeText(row.first_seen), isOptional: true },
    { name: 'last_seen', cell: (row) => timeText(row.last_seen) },
    { name: 'cause', cell: (row) => row.cause },
    { name: 'error_id', cell: (row) => row.error_id ?? undefined, isTruncatable: true },
    { name: 'shape', cell: (row) => row.shape || undefined, isTruncatable: true },
  ],
  toJson: (row) => row,
};

function toRows({ causes, others }: CauseList): readonly CauseFields[] {
  const rows = causes.map(causeFields);
  return others.count === 0 ? rows : [...rows, otherCausesFields(others.count)];
}

function timeText(iso: string | null): string | undefined {
  return iso === null ? undefined : formatTime(Date.parse(iso));
}

const HELP = `
Failures have the same cause if they have the same error_id, and the same error_msg apart from what varies, such as
numbers, names and quoted text. The shape is the error_msg with <*> for what varies. A cause is new if the store has no
earlier failure with it. The row other counts the failures of the causes beyond --limit.

Examples:
  evalwatch causes
  evalwatch causes --project checkout-bot --since 1h --json
  evalwatch failures --cause 1842023dd3c6ad55`;

export const registerCauses: Register = (program, withContext) => {
  addStoreOptions(
    program.command('causes').description('Print the causes of failures, most frequent first'),
  )
    .addOption(projectOption())
    .addOption(sinceOption().default(DEFAULT_SINCE.ms, DEFAULT_SINCE.text))
    .addOption(limitOption('at most this many causes').default(DEFAULT_LIMIT))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(withContext(queryAction(view)));
};

import { resolveFromUser } from '../../config/environment.ts';
import { isSqlite } from '../../store/open.ts';
import { type Context, type Define, UsageError } from '../command.ts';
import { configOption, jsonOption, type Options } from '../options.ts';
import { loadConfiguration } from '../query.ts';
import { type Column, createTable, toJsonDocument } from '../table.ts';

interface MigrateOptions extends Options {
  readonly from: string;
}

const HELP = `
Copies everything or nothing: after an interruption, run the same command again. The file is not changed. Exits 1
while a daemon holds the file, or if the database contains anything else.

Examples:
  evalwatch migrate-store --from data/evalwatch.db --config config/scale.yaml`;

export const defineMigrateStore: Define = (command, run) => {
  command
    .requiredOption('--from <file>', 'SQLite store to copy; no daemon may hold it')
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(run(migrateStore));
};

async function migrateStore(context: Context, options: MigrateOptions): Promise<number> {
  const { stdout, progress, warn, clock } = context;
  const { file, store } = await loadConfiguration(options.config, context.env, 'without keys');
  if (isSqlite(store)) {
    const instead = 'set store.postgres_url_file or store.postgres_url_env';
    throw new UsageError(`${file} does not name a PostgreSQL store: ${instead}`);
  }
  const [{ openContents }, { importStore }, { readPostgresUrl }] = await Promise.all([
    import('../../store/sqlite/contents.ts'),
    import('../../store/postgres/import.ts'),
    import('../../config/secrets.ts'),
  ]);
  const url = await readPostgresUrl(store.postgresUrl);
  const source = await openContents(resolveFromUser(options.from, context.env));
  try {
    const { before: isRepeated, rows } = await importStore({
      url,
      source,
      clock,
      onProgress: (written) => progress(`${written} rows written`),
    });
    progress('');
    if (isRepeated)
      warn('this store has already been copied into this database: nothing was changed');
    const lines = Object.entries(rows).map(([what, moved]): Line => ({ what, moved }));
    await stdout.write(options.json ? toJsonDocument(lines) : createTable(COLUMNS, stdout)(lines));
    return 0;
  } finally {
    progress('');
    source.close();
  }
}

interface Line {
  readonly what: string;
  readonly moved: number;
}

const COLUMNS: readonly Column<Line>[] = [
  ['what', ({ what }) => what],
  ['moved', ({ moved }) => String(moved)],
];

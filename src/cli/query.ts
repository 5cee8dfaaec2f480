import { stat } from 'node:fs/promises';
import { type Config, type ProjectConfig, ConfigError } from '../config/config.ts';
import { configFile, type Env, readVariable, resolveFromUser } from '../config/environment.ts';
import { timeOf } from '../domain/options.ts';
import { closest, didYouMean, quoteId } from '../domain/suggest.ts';
import { StoreError } from '../monitor/errors.ts';
import type { RowQuery, StoreReader } from '../monitor/ports/store.ts';
import { isSqlite, openStoreReader, type StoreLocation } from '../store/open.ts';
import { type Context, UsageError } from './command.ts';
import type { Options } from './options.ts';
import {
  type Cells,
  type Column,
  createTable,
  csvHeader,
  csvRows,
  toJsonDocument,
} from './table.ts';

/** Rows that are printed without `--limit`. */
const DEFAULT_LIMIT = 100;
/** Maximum number of known projects in the message about an unknown one. */
const MAX_LISTED = 10;

/**
 * Loads the configuration that `--config` names, or the default one (docs/specification.md#configuration-path). Imports
 * the parser only now, so that help and usage errors do not wait for it.
 * @throws {ConfigError}
 */
export async function loadConfiguration(
  option: string | undefined,
  env: Env,
  keys: 'with keys' | 'without keys',
): Promise<Config> {
  const requireSecrets = keys === 'with keys';
  // To compile the parser takes a command as long as to open the store. It pays in a daemon, which reloads.
  (await import('zod')).config({ jitless: !requireSecrets });
  const { loadConfig } = await import('../config/load.ts');
  return loadConfig({ file: configFile(option, env), env, requireSecrets });
}

/** Returns the path of the configuration file and, without `--config`, why it is this one. */
export function describeFile(option: string | undefined, env: Env): string {
  const file = configFile(option, env);
  if (option !== undefined) return file;
  return readVariable(env, 'EVALWATCH_CONFIG') === undefined
    ? `${file} (neither --config nor EVALWATCH_CONFIG names another)`
    : `${file} (EVALWATCH_CONFIG)`;
}

/**
 * Finds the store for a command that only reads it, and the projects that are configured for it: the file that `--store` names,
 * with no projects, or the store of the configuration.
 * @throws {ConfigError} which also says how to reach the store in spite of an invalid file
 * @throws {StoreError} if the configuration names a file that does not exist
 */
async function locateStore(
  options: Options,
  context: Context,
): Promise<{ store: StoreLocation; projects: readonly ProjectConfig[] }> {
  const { store, config: option } = options;
  if (store !== undefined) {
    return { store: { path: resolveFromUser(store, context.env) }, projects: [] };
  }
  const place = await loadConfiguration(option, context.env, 'without keys').catch(
    (error: unknown) => {
      // The message about an unreadable file already says what to do.
      if (!(error instanceof ConfigError) || error.reason === 'unreadable') throw error;
      const file = configFile(option, context.env);
      const instead = { file, line: 0, column: 0, message: INSTEAD };
      throw new ConfigError(error.reason, [...error.faults, instead]);
    },
  );
  if (isSqlite(place.store)) await assertExists(place.store.path, option, context);
  return place;
}

const INSTEAD =
  'this command needs a valid configuration file to locate the store: correct the file, or name a SQLite store with --store. ' +
  'A running daemon keeps its configuration';

/** @throws {StoreError} that says who names this path: a daemon may run with another configuration */
async function assertExists(
  path: string,
  option: string | undefined,
  context: Context,
): Promise<void> {
  // Any other trouble is reported when the store is opened.
  const isMissing = await stat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
  if (!isMissing) return;
  const variable = 'EVALWATCH_STORE_PATH';
  const isOverridden = readVariable(context.env, variable) !== undefined;
  throw new StoreError(
    'other',
    `there is no store at ${path}: the daemon creates it at its first start. The path is from ${isOverridden ? variable : describeFile(option, context.env)}; ` +
      'if a daemon is running, it has another configuration: name that one with --config or EVALWATCH_CONFIG',
  );
}

/**
 * Returns the path of the SQLite store, for a command that works with SQLite only.
 * @throws {UsageError} for PostgreSQL, with `instead`: what to do there
 */
export async function locateFile(
  options: Options,
  context: Context,
  instead: string,
): Promise<string> {
  const { store } = await locateStore(options, context);
  if (isSqlite(store)) return store.path;
  throw new UsageError(
    `this command needs a SQLite store, but the configuration names PostgreSQL: ${instead}`,
  );
}

/** An open store, and which projects are configured for it. */
export interface Source {
  readonly reader: StoreReader;
  readonly projects: readonly ProjectConfig[];
}

/**
 * Runs `work` with a reader of the store. A daemon may run meanwhile.
 * @throws {UsageError} for an unknown project
 */
export async function withReader<Result>(
  options: Options,
  context: Context,
  work: (source: Source) => Promise<Result>,
): Promise<Result> {
  const { store, projects } = await locateStore(options, context);
  const reader = await openStoreReader(store, context.clock);
  try {
    const { project } = options;
    if (project !== undefined) assertKnownProject(project, projects, await reader.projects());
    return await work({ reader, projects });
  } finally {
    await reader.close();
  }
}

/** @throws {UsageError} for a project that is neither in the configuration nor in the store */
export function assertKnownProject(
  project: string,
  configured: readonly { readonly id: string }[],
  stored: readonly string[],
): void {
  const known = [...new Set([...configured.map(({ id }) => id), ...stored])];
  if (known.includes(project)) return;
  const more = known.length - MAX_LISTED;
  const first = known.slice(0, MAX_LISTED).map(quoteId).join(', ');
  const listed =
    known.length === 0
      ? ': the store has no projects'
      : `; known projects are ${first}${more > 0 ? ` and ${more} more` : ''}`;
  const suggestion = didYouMean(closest(project, known)) || listed;
  throw new UsageError(`unknown project ${quoteId(project)}${suggestion}`);
}

export function toQuery(options: Options, { clock }: Context): RowQuery {
  const { project, experiment, prompt: promptId, status, cause, limit } = options;
  const [since, until] = [options.since, options.until].map((each) => timeOf(each, clock.now()));
  return { project, experiment, promptId, status, cause, since, until, limit };
}

/** How a command prints rows of a JSON document (docs/specification.md#rows). */
export interface Format<Row extends object> {
  /** Name of the rows in the plural, for the message that there are none. */
  readonly noun: string;
  /** What this message adds, such as why there may be none. */
  readonly ifNone?: string;
  readonly columns: readonly Column<Row>[];
  /** Undefined for a command without `--format csv`. */
  readonly csv?: { readonly columns: string; readonly toCells: (row: Row) => Cells };
}

/** Prints rows as the options say: a table, JSON or CSV. Says on stderr that there are none. */
export async function printRows<Row extends object>(
  rows: readonly Row[],
  { noun, ifNone = '', columns, csv }: Format<Row>,
  options: Options,
  { stdout, warn }: Context,
): Promise<void> {
  if (options.json) {
    await stdout.write(toJsonDocument(rows));
  } else if (csv !== undefined && options.format === 'csv') {
    await stdout.write(csvHeader(csv.columns) + csvRows(rows.map(csv.toCells), csv.columns));
  } else if (rows.length > 0) {
    await stdout.write(createTable(columns, stdout)(rows));
  } else {
    const { project, experiment, prompt, status, cause, since, until } = options;
    const filters = [project, experiment, prompt, status, cause, since, until];
    const isFiltered = filters.some((filter) => filter !== undefined);
    warn(`no ${noun} ${isFiltered ? 'match' : 'recorded'}${ifNone}`);
  }
}

/** Reads and prints the newest rows: 100 unless `--limit` says otherwise, and then says on stderr if there are more. */
export async function printNewest<Row extends object>(
  read: (reader: StoreReader, query: RowQuery) => Promise<readonly Row[]>,
  format: Format<Row>,
  options: Options,
  context: Context,
): Promise<number> {
  const limit = options.limit ?? DEFAULT_LIMIT + 1;
  const query = { ...toQuery(options, context), limit };
  const rows = await withReader(options, context, ({ reader }) => read(reader, query));
  const shown = rows.slice(0, options.limit ?? DEFAULT_LIMIT);
  await printRows(shown, format, options, context);
  if (shown.length < rows.length) {
    context.warn(
      `note: these are the newest ${DEFAULT_LIMIT} ${format.noun}, and there are more: print another number with --limit`,
    );
  }
  return 0;
}

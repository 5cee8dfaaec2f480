import { stat } from 'node:fs/promises';
import type { Config, ProjectConfig } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { configFile, readVariable, resolveFromUser } from '../config/environment.ts';
import { StoreError } from '../monitor/errors.ts';
import { isSqlite, type StoreLocation } from '../store/open.ts';
import type { Context } from './command.ts';
import type { StoreOptions } from './options.ts';
import { UsageError } from './outcome.ts';

/**
 * Loads the configuration that `--config` names, or the default one (docs/specification.md#configuration-path). Imports
 * the parser only now, so that help and usage errors do not wait for it.
 * @throws {ConfigError}
 */
export async function loadConfiguration(
  option: string | undefined,
  { env }: Pick<Context, 'env'>,
  keys: 'with keys' | 'without keys',
): Promise<Config> {
  const [{ loadConfig }, { validateSchedule }] = await Promise.all([
    import('../config/load.ts'),
    import('../schedule/calendar.ts'),
  ]);
  const requireSecrets = keys === 'with keys';
  return loadConfig({ file: configFile(option, env), env, validateSchedule, requireSecrets });
}

/** Returns the path of the configuration file and, without `--config`, why it is this one. */
export function describeFile(option: string | undefined, { env }: Pick<Context, 'env'>): string {
  const file = configFile(option, env);
  if (option !== undefined) return file;
  return readVariable(env, 'EVALWATCH_CONFIG') === undefined
    ? `${file} (neither --config nor EVALWATCH_CONFIG names another)`
    : `${file} (EVALWATCH_CONFIG)`;
}

/** Where a store is, and which projects are configured for it. */
export interface StorePlace {
  readonly store: StoreLocation;
  /** None with `--store`. */
  readonly projects: readonly ProjectConfig[];
}

/**
 * Finds the store for a command that only reads it: the file that `--store` names, or the store of the configuration.
 * @throws {ConfigError} which also says how to reach the store in spite of an invalid file
 * @throws {StoreError} if the configuration names a file that does not exist
 */
export async function locateStore(options: StoreOptions, context: Context): Promise<StorePlace> {
  const { store, config: option } = options;
  if (store !== undefined) {
    return { store: { path: resolveFromUser(store, context.env) }, projects: [] };
  }
  const place = await loadForStore(option, context);
  if (isSqlite(place.store)) await assertExists(place.store.path, option, context);
  return place;
}

async function loadForStore(option: string | undefined, context: Context): Promise<StorePlace> {
  try {
    return await loadConfiguration(option, context, 'without keys');
  } catch (error) {
    // The message about an unreadable file already says what to do.
    if (!(error instanceof ConfigError) || error.reason === 'unreadable') throw error;
    const file = configFile(option, context.env);
    throw new ConfigError(error.reason, [
      ...error.faults,
      { file, line: 0, column: 0, message: INSTEAD },
    ]);
  }
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
    `there is no store at ${path}: the daemon creates it at its first start. The path is from ${isOverridden ? variable : describeFile(option, context)}; ` +
      'if a daemon is running, it has another configuration: name that one with --config or EVALWATCH_CONFIG',
  );
}

/**
 * Returns the path of the SQLite store, for a command that works with SQLite only.
 * @throws {UsageError} for PostgreSQL, with `instead`: what to do there
 */
export function sqlitePath(store: StoreLocation, instead: string): string {
  if (isSqlite(store)) return store.path;
  throw new UsageError(
    `this command needs a SQLite store, but the configuration names PostgreSQL: ${instead}`,
  );
}

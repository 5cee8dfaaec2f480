import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { configFile } from '../config/environment.ts';
import { isSqlite } from '../store/open.ts';
import type { Context } from './command.ts';
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

/**
 * Loads the configuration for a command that needs only the location of the store.
 * @throws {ConfigError} which also says how to reach the store in spite of an invalid file
 */
export async function loadForStore(option: string | undefined, context: Context): Promise<Config> {
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
  'this command needs a valid configuration file to locate the store: correct the file, or name its last valid version ' +
  'with --config (relative paths in it start from its own directory). A running daemon keeps its configuration';

/**
 * Returns the path of the SQLite store, for a command that works with SQLite only.
 * @throws {UsageError} for PostgreSQL, with `instead`: what to do there
 */
export function sqlitePath(store: Config['store'], instead: string): string {
  if (isSqlite(store)) return store.path;
  throw new UsageError(
    `this command needs a SQLite store, but the configuration names PostgreSQL: ${instead}`,
  );
}

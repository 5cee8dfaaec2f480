import type { Config } from '../config/config.ts';
import { configFile } from '../config/environment.ts';
import type { Context } from './command.ts';

/**
 * Loads the configuration that `--config` names, or the one that stands in for it (contract 1). What parses it is
 * imported here, so that help and usage errors need not wait for it.
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
  const requireKeys = keys === 'with keys';
  return loadConfig({ file: configFile(option, env), env, validateSchedule, requireKeys });
}

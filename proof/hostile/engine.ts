import { join } from 'node:path';
import type * as Clocks from '../../src/app/clock.ts';
import type * as Load from '../../src/config/load.ts';
import type * as Engines from '../../src/app/engine.ts';
import type * as Logging from '../../src/log/logger.ts';

/** Opens the daemon without its schedule and its web interface. */
export async function openEngine(source: string, file: string) {
  const from = async <Module>(path: string) => (await import(join(source, path))) as Module;
  const { loadConfig } = await from<typeof Load>('config/load.ts');
  const { createLogger } = await from<typeof Logging>('log/logger.ts');
  const { systemClock: clock } = await from<typeof Clocks>('app/clock.ts');
  const engines = await from<typeof Engines>('app/engine.ts');
  const config = await loadConfig({
    file,
    env: {},
    validateSchedule: () => undefined,
    requireSecrets: true,
  });
  const logger = createLogger({
    level: 'error',
    destination: { write: () => {} },
    onFatalError: (error) => {
      throw error;
    },
  });
  const engine = await engines.openEngine({ config, logger, clock });
  await engine.configure(config);
  return {
    poll: async (id: string) => {
      const run = { dueAt: clock.now(), nextAt: undefined };
      return await engine.poller.poll({ id, datasets: false }, run);
    },
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

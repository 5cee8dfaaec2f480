import { readVariable } from '../../config/environment.ts';
import type { Daemon } from '../../app/daemon.ts';
import type { Action, Context, Register } from '../command.ts';
import { loadConfiguration } from '../configuration.ts';
import { type ConfigOption, configOption } from '../options.ts';
import { startUnlessStopped } from '../start-unless-stopped.ts';

const HELP = `
SIGTERM or SIGINT stops the daemon, SIGHUP reloads the configuration. It writes log lines (JSON) to stdout, and
serves metrics, health checks, a status page and an API at web.listen.

Examples:
  evalwatch run --config /etc/evalwatch/evalwatch.yaml
  evalwatch run --config /etc/evalwatch/evalwatch.yaml --watch-config`;

export const registerRun: Register = (program, withContext) => {
  program
    .command('run')
    .description('Run the daemon: poll the configured projects until a signal stops it')
    .addOption(configOption())
    .option('--watch-config', 'reload the configuration when its file changes')
    .addHelpText('after', HELP)
    .action(withContext(run));
};

interface RunOptions extends ConfigOption {
  readonly watchConfig?: true;
}

const run: Action<RunOptions> = async (options, context) => {
  const stop = Promise.withResolvers<void>();
  let reload: (() => Promise<unknown>) | undefined;
  context.signals.onSignal = (signal) => {
    if (signal === 'SIGHUP') void reload?.();
    else stop.resolve();
  };
  const daemon = await startUnlessStopped(
    (signal) => start(options, context, signal),
    stop.promise,
  );
  if (daemon === undefined) return 0;
  reload = () => daemon.reload();
  await stop.promise;
  await daemon.stop();
  return 0;
};

async function start(options: RunOptions, context: Context, signal: AbortSignal): Promise<Daemon> {
  const loadConfig = () => loadConfiguration(options.config, context, 'with keys');
  const config = await loadConfig();
  signal.throwIfAborted();
  const [{ createLogger }, { fileDescriptor }, { startDaemon }, { createSystemd }] =
    await Promise.all([
      import('../../log/logger.ts'),
      import('../../log/destination.ts'),
      import('../../app/daemon.ts'),
      import('../../app/systemd.ts'),
    ]);
  const logger = createLogger({
    level: config.log.level,
    destination: fileDescriptor(1),
    onFatalError: (error) => {
      // Exit at once: nothing may happen whose log line is not written (docs/specification.md#log-lines).
      context.warn(`error: cannot write to stdout, so evalwatch exits: ${error.message}`);
      process.exit(1);
    },
  });
  process.on('uncaughtException', (error) => {
    logger.error({ event: 'daemon.crashed', err: error }, 'Unexpected error, the daemon exits');
    process.exit(1);
  });
  const daemon = await startDaemon({
    config,
    loadConfig,
    watchConfig: options.watchConfig ?? false,
    logger,
    clock: context.clock,
    revision: readVariable(context.env, 'EVALWATCH_REVISION') ?? 'unknown',
    signal,
  });
  const systemd = createSystemd(context.env, logger);
  systemd.ready();
  return {
    ...daemon,
    stop: async () => {
      systemd.stopping();
      await daemon.stop();
    },
  };
}

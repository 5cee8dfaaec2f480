import { readVariable } from '../../config/environment.ts';
import type { Daemon } from '../../app/daemon.ts';
import type { Context, Define } from '../command.ts';
import { configOption, type Options } from '../options.ts';
import { loadConfiguration } from '../query.ts';

const HELP = `
SIGTERM or SIGINT stops the daemon, SIGHUP reloads the configuration. It writes log lines (JSON) to stdout, and
serves metrics, health checks, a status page and an API at web.listen.

Examples:
  evalwatch run --config /etc/evalwatch/evalwatch.yaml
  evalwatch run --config /etc/evalwatch/evalwatch.yaml --watch-config`;

interface RunOptions extends Options {
  readonly watchConfig?: true;
}

export const defineRun: Define = (command, run) => {
  command
    .addOption(configOption())
    .option('--watch-config', 'reload the configuration when its file changes')
    .addHelpText('after', HELP)
    .action(run(runDaemon));
};

async function runDaemon(context: Context, options: RunOptions): Promise<number> {
  const daemon = await start(options, context);
  const stop = Promise.withResolvers<void>();
  context.signals.onSignal = (signal) => {
    if (signal === 'SIGHUP') void daemon.reload();
    else stop.resolve();
  };
  await stop.promise;
  await daemon.stop();
  return 0;
}

async function start(options: RunOptions, context: Context): Promise<Daemon> {
  const loadConfig = () => loadConfiguration(options.config, context.env, 'with keys');
  const config = await loadConfig();
  const [{ createLogger, fileDescriptor }, { startDaemon }, { notifySystemd }] = await Promise.all([
    import('../../log/logger.ts'),
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
  });
  const notifyStopping = notifySystemd(context.env, logger, context.clock);
  return {
    ...daemon,
    stop: async () => {
      notifyStopping();
      await daemon.stop();
    },
  };
}

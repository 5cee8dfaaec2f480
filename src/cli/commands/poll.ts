import type { Config } from '../../config/config.ts';
import { quoteId } from '../../domain/suggest.ts';
import { StoreError } from '../../monitor/errors.ts';
import { pollResultFields } from '../../rows/fields.ts';
import { isSqlite } from '../../store/open.ts';
import { type Context, type Define, UsageError } from '../command.ts';
import { configOption, jsonOption, type Options } from '../options.ts';
import { assertKnownProject, loadConfiguration } from '../query.ts';
import { type Column, createTable, toJsonDocument } from '../table.ts';

const HELP = `
Log lines go to stderr. Exits 1 if a poll fails, or if a daemon holds the store; the error then says how to have the
daemon poll. With PostgreSQL a daemon polls; the error says how to ask it.

Examples:
  evalwatch poll --project checkout-bot
  evalwatch poll --json`;

export const definePoll: Define = (command, run) => {
  command
    .addOption(configOption())
    .option('--project <id>', 'poll only this project')
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(run(poll));
};

/** Polls, reports failures and prints the results. @throws {StoreError} also when a daemon holds the store */
async function poll(context: Context, options: Options): Promise<number> {
  const { clock, progress, stdout } = context;
  const { project: only, json } = options;
  const config = await loadConfiguration(options.config, context.env, 'with keys');
  if (!isSqlite(config.store)) {
    const how = describePollRequest(config, only);
    throw new UsageError(
      `poll needs a SQLite store, but the configuration names PostgreSQL: let a daemon poll: ${how}`,
    );
  }
  const [{ openEngine }, { createLogger, fileDescriptor }] = await Promise.all([
    import('../../app/engine.ts'),
    import('../../log/logger.ts'),
  ]);
  const logger = createLogger({
    level: config.log.level,
    destination: fileDescriptor(2),
    onFatalError: () => process.exit(1),
  });
  const engine = await openEngine({ config, logger, clock }).catch((error: unknown) => {
    if (!(error instanceof StoreError) || error.reason !== 'busy') throw error;
    const how = describePollRequest(config, only);
    const message = `${error.message}: if that is a daemon, let it poll: ${how}`;
    throw new StoreError('busy', message, error);
  });
  try {
    const ids = config.projects
      .map(({ id }) => id)
      .filter((id) => only === undefined || id === only);
    if (only !== undefined && ids.length === 0) {
      assertKnownProject(only, config.projects, await engine.store.projects());
      throw new UsageError(`project ${quoteId(only)} is no longer in the configuration`);
    }
    await engine.configure(config);
    let done = 0;
    const results = await Promise.all(
      ids.map((id) =>
        engine.poll(id, { dueAt: clock.now() }).finally(() => {
          done += 1;
          progress(`polled ${done} of ${ids.length}`);
        }),
      ),
    );
    // Nobody else polls a SQLite store.
    const rows = results.filter((each) => each !== undefined).map(pollResultFields);
    try {
      await engine.reporter.drain(ids);
    } finally {
      // Print also if the store fails in between: the polls have ended.
      progress('');
      await stdout.write(json ? toJsonDocument(rows) : createTable(COLUMNS, stdout)(rows));
    }
    return rows.every(({ ok }) => ok) ? 0 : 1;
  } finally {
    progress('');
    await engine.close();
  }
}

/**
 * Returns how a user has a running daemon with this configuration poll, as the end of an error message. The command runs on
 * the machine of the daemon.
 */
function describePollRequest({ web }: Config, project: string | undefined): string {
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[web.host] ?? web.host;
  const authority = `${host.includes(':') ? `[${host}]` : host}:${web.port}`;
  // An apostrophe would end the quotes of the shell.
  const id = project && encodeURIComponent(project).replaceAll("'", '%27');
  const query = id === undefined ? '' : `?project=${id}`;
  const login = web.configFile === undefined ? '' : ', with the TLS and login of web.config_file';
  const enable = web.enableLifecycle ? '' : 'set web.enable_lifecycle to true, reload, then ';
  return `${enable}run on its machine: curl -X POST 'http://${authority}/-/poll${query}'${login}`;
}

const COLUMNS: readonly Column<ReturnType<typeof pollResultFields>>[] = [
  ['project', ({ project }) => project],
  ['ok', ({ ok }) => (ok ? 'yes' : 'no'), { color: ({ ok }) => (ok ? 'green' : 'red') }],
  ['reason', ({ reason }) => reason ?? ''],
  ['prompts', ({ prompts }) => String(prompts ?? '')],
  ['transitions', ({ transitions }) => String(transitions)],
  ['duration_ms', ({ duration_ms }) => String(duration_ms)],
];

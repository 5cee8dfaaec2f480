import type { Config } from '../../config/config.ts';
import { localAddresses } from '../../config/listen-address.ts';
import { quoteId } from '../../config/redaction.ts';
import type { Engine } from '../../app/engine.ts';
import { StoreError, unlessStoreFails, type PollFailureReason } from '../../monitor/errors.ts';
import { pollResult, pollResultFields, type PollResult } from '../../rows/fields.ts';
import { isSqlite } from '../../store/open.ts';
import type { Action, Context, Register } from '../command.ts';
import { loadConfiguration } from '../configuration.ts';
import { UsageError } from '../outcome.ts';
import { type ConfigOption, configOption, type JsonOption, jsonOption } from '../options.ts';
import { assertKnownProject } from '../query.ts';
import { jsonLines, tableLines, type Column } from '../output/table.ts';

interface PollOptions extends ConfigOption, JsonOption {
  readonly project?: string;
}

const HELP = `
Log lines go to stderr. Exits 1 if a poll fails, or if a daemon holds the store; the error then says how to have the
daemon poll.

Examples:
  evalwatch poll --project checkout-bot
  evalwatch poll --json`;

export const registerPoll: Register = (program, withContext) => {
  program
    .command('poll')
    .description('Poll each project once, or only one of them, and log failed prompts')
    .addOption(configOption())
    .option('--project <id>', 'poll only this project')
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(withContext(poll));
};

/** Why a project has no finished poll. Occurs only where several processes share the store. */
type NotPolledReason = 'not_owned' | 'outdated';

interface NotPolled {
  readonly project: string;
  readonly reason: NotPolledReason;
  /** Worker that owns the project now; undefined if no worker does, or if the store does not answer. */
  readonly owner: string | undefined;
}

type Polled = PollResult<PollFailureReason | NotPolledReason> & { readonly notPolled?: NotPolled };

const poll: Action<PollOptions> = async (options, context) => {
  const config = await loadConfiguration(options.config, context, 'with keys');
  const polled = await pollOnce(config, options, context);
  for (const { notPolled } of polled)
    if (notPolled) context.warn(`error: ${describeNotPolled(notPolled)}`);
  return polled.some(({ reason }) => reason !== undefined) ? 1 : 0;
};

/** Polls, reports failures and prints the results. @throws {StoreError} also when a daemon holds the store */
async function pollOnce(
  config: Config,
  { project: only, json }: PollOptions,
  context: Context,
): Promise<readonly Polled[]> {
  const [{ openEngine }, { createLogger }, { fileDescriptor }] = await Promise.all([
    import('../../app/engine.ts'),
    import('../../log/logger.ts'),
    import('../../log/destination.ts'),
  ]);
  const logger = createLogger({
    level: config.log.level,
    destination: fileDescriptor(2),
    onFatalError: () => process.exit(1),
  });
  const progress = context.progress;
  const { clock } = context;
  const engine = await whileFree(config, only, () =>
    openEngine({ config, logger, clock, takesAll: true }),
  );
  try {
    const projects = config.projects.filter(({ id }) => only === undefined || id === only);
    if (only !== undefined && projects.length === 0) {
      assertKnownProject(only, config.projects, await engine.store.projects());
      throw new UsageError(`project ${quoteId(only)} is no longer in the configuration`);
    }
    const ids = projects.map(({ id }) => id);
    // Refuse before changing anything that a polling daemon depends on.
    await assertNotOwned(engine, config, ids);
    await engine.configure(config);
    await claim(engine, config, ids);
    let done = 0;
    const polled = await Promise.all(
      ids.map(async (id) => {
        const run = { dueAt: clock.now(), nextAt: undefined };
        const finished = await engine.poll(id, run);
        done += 1;
        progress(`polled ${done} of ${ids.length}`);
        return finished === undefined ? await toNotPolled(engine, id) : pollResult(finished);
      }),
    );
    try {
      await engine.reporter.drain(ids);
    } finally {
      // Print also if the store fails in between: the polls have ended.
      progress('');
      await printResults(polled, json, context);
    }
    return polled;
  } finally {
    progress('');
    await engine.sharing?.worker.stop();
    await engine.close();
  }
}

/** Opens the store. @throws {StoreError} that says how to poll, if a daemon holds the SQLite file */
async function whileFree(
  config: Config,
  project: string | undefined,
  open: () => Promise<Engine>,
): Promise<Engine> {
  try {
    return await open();
  } catch (error) {
    const isHeld = error instanceof StoreError && error.reason === 'busy';
    if (!isHeld || !isSqlite(config.store)) throw error;
    const how = describePollRequest(config, project);
    throw new StoreError(
      'busy',
      `${error.message}: if that is a daemon, let it poll: ${how}`,
      error,
    );
  }
}

/**
 * Returns how a user has a running daemon with this configuration poll, as the end of an error message. The command runs on
 * the machine of the daemon.
 */
function describePollRequest({ web }: Config, project: string | undefined): string {
  const [host = web.host] = localAddresses(web.host);
  const authority = `${host.includes(':') ? `[${host}]` : host}:${web.port}`;
  // An apostrophe would end the quotes of the shell.
  const id = project && encodeURIComponent(project).replaceAll("'", '%27');
  const query = id === undefined ? '' : `?project=${id}`;
  const login = web.configFile === undefined ? '' : ', with the TLS and login of web.config_file';
  const enable = web.enableLifecycle ? '' : 'set web.enable_lifecycle to true, reload, then ';
  return `${enable}run on its machine: curl -X POST 'http://${authority}/-/poll${query}'${login}`;
}

async function printResults(
  polled: readonly Polled[],
  json: true | undefined,
  { stdout }: Context,
): Promise<void> {
  const lines = json ? jsonLines(polled, pollResultFields) : tableLines(polled, COLUMNS, stdout);
  await stdout.writeLines(lines);
}

/** Returns the result of a project whose poll resolved without an outcome. */
async function toNotPolled(engine: Engine, project: string): Promise<Polled> {
  const reason: NotPolledReason = engine.mayPoll(project) ? 'outdated' : 'not_owned';
  const owner =
    reason === 'outdated' ? undefined : await unlessStoreFails(() => engine.ownerOf(project));
  const notPolled = { project, reason, owner };
  return { project, reason, prompts: undefined, transitions: 0, durationMs: undefined, notPolled };
}

function describeNotPolled({ project, reason, owner }: NotPolled): string {
  const what = `project ${quoteId(project)} was not polled`;
  if (reason === 'outdated') {
    return `${what}: other processes committed it first each time; run the command again`;
  }
  return owner === undefined
    ? `${what}: this process lost it, because its lease ran out, the database did not answer or another process claimed it; run the command again`
    : `${what}: worker ${owner} took it over and polls it now`;
}

/** Claims the projects, where daemons share the store. @throws {StoreError} if a daemon owns one of them */
async function claim(engine: Engine, config: Config, projects: readonly string[]): Promise<void> {
  const worker = engine.sharing?.worker;
  if (worker === undefined) return;
  worker.configure(projects);
  await worker.start();
  const others = projects.filter((project) => !worker.mayPoll(project));
  await assertNotOwned(engine, config, others);
}

async function assertNotOwned(
  engine: Engine,
  config: Config,
  projects: readonly string[],
): Promise<void> {
  for (const project of projects) {
    const owner = await engine.ownerOf(project);
    if (owner === undefined) continue;
    const what = `project ${quoteId(project)} is polled by daemon ${owner}`;
    const how = describePollRequest(config, project);
    throw new StoreError('busy', `${what}: stop that daemon first, or let it poll: ${how}`);
  }
}

const COLUMNS: readonly Column<Polled>[] = [
  { name: 'project', cell: ({ project }) => project, isTruncatable: true },
  {
    name: 'ok',
    cell: ({ reason }) => (reason === undefined ? 'yes' : 'no'),
    color: ({ reason }) => (reason === undefined ? 'green' : 'red'),
  },
  { name: 'reason', cell: ({ reason }) => reason ?? '' },
  { name: 'prompts', cell: ({ prompts }) => String(prompts ?? '') },
  { name: 'transitions', cell: ({ transitions }) => String(transitions) },
  { name: 'duration_ms', cell: ({ durationMs }) => formatDuration(durationMs) },
];

function formatDuration(ms: number | undefined): string {
  return ms === undefined ? '' : String(Math.round(ms));
}

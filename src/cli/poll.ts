import type { Config } from '../config/config.ts';
import type { Engine } from '../engine.ts';
import { StoreError } from '../monitor/errors.ts';
import type { FinishedPoll } from '../monitor/events.ts';
import { pollFields } from '../monitor/row-fields.ts';
import type { Action, Context, Register } from './command.ts';
import { loadConfiguration } from './configuration.ts';
import { UsageError } from './faults.ts';
import { configOption, jsonOption } from './options.ts';
import { requireKnown } from './query.ts';
import { jsonLines, tableLines, type Column } from './table.ts';

interface PollOptions {
  readonly config?: string;
  readonly project?: string;
  readonly json?: true;
}

const HELP = `
Log lines go to stderr. Exits 1 if a poll failed, or if a daemon holds the store.

Examples:
  evalwatch poll --project checkout-bot
  evalwatch poll --json`;

export const registerPoll: Register = (program, act) => {
  program
    .command('poll')
    .description('Poll every project once, or one, and log what has failed')
    .addOption(configOption())
    .option('--project <id>', 'only this project')
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(act(poll));
};

const poll: Action<PollOptions> = async (options, context) => {
  const config = await loadConfiguration(options.config, context, 'with keys');
  const finished = await pollOnce(config, options.project, context);
  await (options.json
    ? context.stdout.writeLines(jsonLines(finished, pollFields))
    : context.stdout.writeLines(tableLines(finished, COLUMNS, context.stdout)));
  return finished.some(({ failure }) => failure !== undefined) ? 1 : 0;
};

/** @throws {StoreError} also when a daemon holds the store */
async function pollOnce(
  config: Config,
  only: string | undefined,
  context: Context,
): Promise<readonly FinishedPoll[]> {
  const [{ openEngine }, { createLogger }, { fileDescriptor }, { createSecrets }] =
    await Promise.all([
      import('../engine.ts'),
      import('../log/logger.ts'),
      import('../log/destination.ts'),
      import('../evaluation-api/secrets.ts'),
    ]);
  const secrets = createSecrets();
  const logger = createLogger({
    level: config.log.level,
    destination: fileDescriptor(2),
    scrub: secrets.scrub,
    onDead: () => process.exit(1),
  });
  const progress = context.progress;
  const { clock } = context;
  const engine = await openEngine({ config, logger, secrets, clock, takesAll: true });
  try {
    const projects = config.projects.filter(({ id }) => only === undefined || id === only);
    if (only !== undefined && projects.length === 0) {
      requireKnown(only, config, await engine.store.projects());
      throw new UsageError(`project ${JSON.stringify(only)} is no longer in the configuration`);
    }
    const ids = projects.map(({ id }) => id);
    // Before anything is changed for those that poll already.
    await refuseOwned(engine, ids);
    await engine.configure(config);
    await takeOver(engine, ids);
    let done = 0;
    const finished = await Promise.all(
      projects.map(async (project) => {
        const run = { dueAt: clock.now(), nextAt: undefined };
        const outcome = await engine.poll(project.id, run);
        done += 1;
        progress(`polled ${done} of ${projects.length}`);
        return outcome;
      }),
    );
    await engine.reporter.drain(ids);
    return finished.filter((outcome) => outcome !== undefined);
  } finally {
    progress('');
    await engine.sharing?.worker.stop();
    await engine.close();
  }
}

/** Where daemons share the store it is these that poll. @throws {StoreError} naming one that owns a project */
async function takeOver(engine: Engine, projects: readonly string[]): Promise<void> {
  const worker = engine.sharing?.worker;
  if (worker === undefined) return;
  worker.configure(projects);
  await worker.start();
  const others = projects.filter((project) => !worker.mayPoll(project));
  await refuseOwned(engine, others);
}

async function refuseOwned(engine: Engine, projects: readonly string[]): Promise<void> {
  for (const project of projects) {
    // oxlint-disable-next-line no-await-in-loop -- the first one is enough
    const owner = await engine.ownerOf(project);
    if (owner === undefined) continue;
    const what = `project ${JSON.stringify(project)} is polled by the daemon ${owner}`;
    throw new StoreError('busy', what);
  }
}

const COLUMNS: readonly Column<FinishedPoll>[] = [
  { name: 'project', cell: ({ project }) => project, cuttable: true },
  {
    name: 'ok',
    cell: ({ failure }) => (failure === undefined ? 'yes' : 'no'),
    color: ({ failure }) => (failure === undefined ? 'green' : 'red'),
  },
  { name: 'reason', cell: ({ failure }) => failure?.reason ?? '' },
  { name: 'prompts', cell: ({ prompts }) => String(prompts ?? '') },
  { name: 'transitions', cell: ({ transitions }) => String(transitions) },
  { name: 'duration_ms', cell: ({ durationMs }) => String(Math.round(durationMs)) },
];

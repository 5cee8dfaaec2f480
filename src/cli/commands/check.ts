import type { Config, ProjectConfig } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { ConfiguredLimit } from '../../domain/expectation.ts';
import { DEFAULT_LIMIT_MS } from '../../domain/learned-limit.ts';
import type { UnfinishedStatus } from '../../domain/status.ts';
import type { Action, Context, Register } from '../command.ts';
import { loadConfiguration } from '../configuration.ts';
import { keyWarnings } from '../key-warnings.ts';
import { type ConfigOption, configOption, type JsonOption, jsonOption } from '../options.ts';
import { limitWarnings } from '../limit-warnings.ts';
import { planProjects, type PlannedProject } from '../plan.ts';
import { rateWarnings } from '../rate-warnings.ts';
import { storeWarnings } from '../store-warnings.ts';
import { jsonLines, tableLines, type Column } from '../output/table.ts';
import { toJsonLine } from '../output/json.ts';
import { formatDuration, formatZonedTime } from '../output/text.ts';

const HELP = `
Sends no request and opens no store. Limits are printed as configured. \`auto\` is learned from the
project's own prompts. Until enough are known, the time in parentheses applies. Warns if an API key
or the address of the database is missing or unusable, if a limit is shorter than the time between
two polls, and if the schedules need more requests than max_requests_per_second allows. If the
configuration is invalid, prints every error and exits 2.

Examples:
  evalwatch check --config config/evalwatch.yaml
  evalwatch check --json`;

export const registerCheck: Register = (program, withContext) => {
  program
    .command('check')
    .description(
      'Validate the configuration and print the next polls and expectations of each project',
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(withContext(check));
};

const check: Action<ConfigOption & JsonOption> = async (options, context) => {
  const config = await loadAll(options.config, context).catch(async (error: unknown) => {
    if (!(options.json && error instanceof ConfigError)) throw error;
    await context.stdout.write(`${toJsonLine({ errors: error.faults })}\n`);
    return undefined;
  });
  if (config === undefined) return 2;
  const planned = await planProjects(config.projects, context.clock.now());
  await (options.json ? printJson(planned, context) : printTables(planned, context));
  const warnings = [
    ...(await keyWarnings(config.projects)),
    ...(await storeWarnings(config.store)),
    ...limitWarnings(planned, context.clock.now()),
    ...rateWarnings(planned, config.service.maxRequestsPerSecond, context.clock.now()),
  ];
  for (const warning of warnings) context.warn(`warning: ${warning}`);
  return 0;
};

/** Loads the configuration, and checks the web configuration file as well. */
async function loadAll(option: string | undefined, context: Context): Promise<Config> {
  const config = await loadConfiguration(option, context, 'without keys');
  const { loadWebConfig } = await import('../../config/web-file/web-file.ts');
  if (config.web.configFile !== undefined) await loadWebConfig(config.web.configFile);
  return config;
}

function printJson(planned: readonly PlannedProject[], { stdout }: Context): Promise<void> {
  return stdout.writeLines(
    jsonLines(planned, ({ project, nextRuns }) => ({
      project: project.id,
      schedule: project.schedule,
      timezone: project.timezone,
      next_runs: nextRuns.map((at) => new Date(at).toISOString()),
      team: project.team || null,
      expect: {
        max_pending: limitText(project.expect.limits.PENDING),
        max_running: limitText(project.expect.limits.RUNNING),
        max_failure_ratio: project.expect.maxFailureRatio ?? 'off',
      },
    })),
  );
}

interface Line {
  /** Set in the first line of each project. */
  readonly project?: ProjectConfig;
  readonly nextRun: string;
}

const COLUMNS: readonly Column<Line>[] = [
  { name: 'project', cell: ({ project }) => project?.id ?? '', isTruncatable: true },
  { name: 'schedule', cell: ({ project }) => project?.schedule ?? '' },
  { name: 'timezone', cell: ({ project }) => project?.timezone ?? '' },
  { name: 'next_runs', cell: ({ nextRun }) => nextRun },
];

const EXPECTATION_COLUMNS: readonly Column<PlannedProject>[] = [
  { name: 'project', cell: ({ project }) => project.id, isTruncatable: true },
  { name: 'team', cell: ({ project }) => project.team || undefined, isTruncatable: true },
  { name: 'max_pending', cell: ({ project }) => limitCell('PENDING', project) },
  { name: 'max_running', cell: ({ project }) => limitCell('RUNNING', project) },
  {
    name: 'max_failure_ratio',
    cell: ({ project }) => String(project.expect.maxFailureRatio ?? 'off'),
  },
];

function limitCell(status: UnfinishedStatus, { expect }: ProjectConfig): string {
  const limit = limitText(expect.limits[status]);
  return limit === 'auto' ? `auto (${formatDuration(DEFAULT_LIMIT_MS[status])} at first)` : limit;
}

/** The limit as the configuration writes it. */
function limitText(limit: ConfiguredLimit): string {
  return typeof limit === 'number' ? formatDuration(limit) : limit;
}

async function printTables(planned: readonly PlannedProject[], { stdout }: Context): Promise<void> {
  const lines = planned.flatMap(({ project, nextRuns }) =>
    nextRuns.map((at, index): Line => {
      const nextRun = formatZonedTime(at, project.timezone);
      return index === 0 ? { project, nextRun } : { nextRun };
    }),
  );
  await stdout.writeLines(tableLines(lines, COLUMNS, stdout));
  await stdout.write('\n');
  await stdout.writeLines(tableLines(planned, EXPECTATION_COLUMNS, stdout));
}

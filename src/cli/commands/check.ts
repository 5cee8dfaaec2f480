import type { Config, ProjectConfig } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { Action, Context, Register } from '../command.ts';
import { loadConfiguration } from '../configuration.ts';
import { keyWarnings } from '../key-warnings.ts';
import { type ConfigOption, configOption, type JsonOption, jsonOption } from '../options.ts';
import { planProjects, type PlannedProject } from '../plan.ts';
import { rateWarnings } from '../rate-warnings.ts';
import { storeWarnings } from '../store-warnings.ts';
import { jsonLines, tableLines, type Column } from '../output/table.ts';
import { toJsonLine } from '../output/json.ts';
import { formatZonedTime } from '../output/text.ts';

const HELP = `
Sends no request and opens no store. Warns if an API key or the address of the database is missing or unusable, and
if the schedules need more requests than max_requests_per_second allows. If the configuration is invalid, prints every
error and exits 2.

Examples:
  evalwatch check --config config/evalwatch.yaml
  evalwatch check --json`;

export const registerCheck: Register = (program, withContext) => {
  program
    .command('check')
    .description('Validate the configuration and print the next polls of each project')
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
  await (options.json ? printJson(planned, context) : printTable(planned, context));
  const warnings = [
    ...(await keyWarnings(config.projects)),
    ...(await storeWarnings(config.store)),
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

function printTable(planned: readonly PlannedProject[], { stdout }: Context): Promise<void> {
  const lines = planned.flatMap(({ project, nextRuns }) =>
    nextRuns.map((at, index): Line => {
      const nextRun = formatZonedTime(at, project.timezone);
      return index === 0 ? { project, nextRun } : { nextRun };
    }),
  );
  return stdout.writeLines(tableLines(lines, COLUMNS, stdout));
}

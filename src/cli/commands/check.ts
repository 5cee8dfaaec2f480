import type { Config, ProjectConfig } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { ConfiguredLimit } from '../../domain/expectation.ts';
import { DEFAULT_LIMIT_MS } from '../../domain/learned-limit.ts';
import { type Kind, PROMPT_STATUSES, type UnfinishedStatus } from '../../domain/status.ts';
import { visible } from '../../domain/visible.ts';
import type { PollFailureReason } from '../../monitor/errors.ts';
import type { Endpoint } from '../../monitor/events.ts';
import type { Action, Context, Register } from '../command.ts';
import { describeFile, loadConfiguration } from '../configuration.ts';
import { commandName } from '../../config/environment.ts';
import { quoteId } from '../../config/redaction.ts';
import type { Connection } from '../connections.ts';
import { addressWarnings } from '../address-warnings.ts';
import { keyFindings } from '../key-warnings.ts';
import { type ConfigOption, configOption, type JsonOption, jsonOption } from '../options.ts';
import { limitWarnings } from '../limit-warnings.ts';
import { planProjects, type PlannedProject } from '../plan.ts';
import { rateWarnings } from '../rate-warnings.ts';
import { heartbeatFindings, storeFindings } from '../secret-findings.ts';
import { jsonLines, tableLines, type Column } from '../output/table.ts';
import { toJsonLine } from '../output/json.ts';
import { formatDuration, formatZonedTime, quoteWord } from '../output/text.ts';

interface CheckOptions extends ConfigOption, JsonOption {
  readonly connect?: true;
  readonly verbose?: true;
}

const HELP = `
Opens no store, and sends no request without --connect. With it, makes each request of the daemon
once for each project: the prompts, the datasets if they are watched, and the details of one FAILED
prompt. Prints how many prompts there are by status, how large the listing is and how long it took;
exits 1 if a request fails. Limits are printed as configured. \`auto\` is learned from the
project's own prompts. Until enough are known, the time in parentheses applies. Warns if a variable
with an API key or with the address of the database or of the heartbeat is not set, if base_url ends
in /v2 or is an example, if a limit is shorter than the time between two polls, and if the schedules
need more requests than max_requests_per_second allows. Exits 1 if a file with an API key or with such
an address is missing, or if the key or the address is unusable. If the configuration is invalid,
prints every error and exits 2.

Examples:
  evalwatch check --config config/evalwatch.yaml
  evalwatch check --connect
  evalwatch check --json`;

export const registerCheck: Register = (program, withContext) => {
  program
    .command('check')
    .description(
      'Validate the configuration and print the schedule and expectations of each project',
    )
    .addOption(configOption())
    .option('--connect', 'also make each request of the daemon once for each project')
    .option('--verbose', 'also print the next five runs of each schedule')
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(withContext(check));
};

const check: Action<CheckOptions> = async (options, context) => {
  const { stdout } = context;
  const file = options.config;
  const config = await loadAll(file, context).catch(async (error: unknown) => {
    if (!(options.json && error instanceof ConfigError)) throw error;
    await stdout.write(`${toJsonLine({ errors: error.faults })}\n`);
    return undefined;
  });
  if (config === undefined) return 2;
  if (!options.json)
    await stdout.write(`Configuration: ${visible(describeFile(file, context))}\n\n`);
  const planned = await planProjects(config.projects, context.clock.now());
  const connections = options.connect ? await connect(config, context) : undefined;
  await (options.json
    ? printJson(planned, connections, context)
    : printTables(planned, connections, options, context));
  const secrets = [
    // With --connect, each project says that its key cannot be used.
    ...(await keyFindings(config.projects)).filter(({ isError }) => !(isError && connections)),
    ...(await storeFindings(config.store)),
    ...(await heartbeatFindings(config.heartbeat)),
  ];
  const warnings = [
    ...addressWarnings(config.service.baseUrl),
    ...secrets.flatMap(({ message, isError }) => (isError ? [] : [message])),
    ...(connections ?? []).flatMap(({ project, paged }) =>
      paged.map((kind) => pageWarning(project, kind)),
    ),
    ...limitWarnings(planned, context.clock.now()),
    ...rateWarnings(planned, config.service.maxRequestsPerSecond, context.clock.now()),
  ];
  for (const warning of warnings) context.warn(`warning: ${warning}`);
  const faults = [
    ...secrets.flatMap(({ message, isError }) => (isError ? [message] : [])),
    ...(connections ?? []).flatMap(({ project, failure }) =>
      failure === undefined ? [] : [explain(project, failure)],
    ),
  ];
  for (const fault of faults) context.warn(`error: ${fault}`);
  if (faults.length > 0) return 1;
  if (!options.json) {
    const named = file === undefined ? '' : ` --config ${quoteWord(file)}`;
    const start = visible(`${commandName(context.env)} run${named} --watch-config`);
    await stdout.write(`\nOK. This command starts the daemon: ${start}\n`);
  }
  return 0;
};

/** Says which request failed: what was requested, what the service answered, and what to do. */
function explain(project: string, { endpoint, error }: NonNullable<Connection['failure']>): string {
  const { reason, message, details } = error;
  const { url, detail, statusCode, location } = details;
  const target = location === undefined ? '' : `, and redirects to ${JSON.stringify(location)}`;
  const request = url === undefined ? '' : ` (GET ${url})`;
  const words = detail === undefined ? '' : `: ${JSON.stringify(detail)}`;
  // The message about a key that cannot be read already says what to do.
  const isUnsent = reason === 'auth' && statusCode === undefined;
  const isLogin = location !== undefined && LOGIN.test(location);
  const advice = isLogin ? LOGIN_ADVICE : ADVICE[reason];
  const rest = isUnsent || advice === undefined ? '' : `. ${advice}`;
  return `project ${quoteId(project)}${FAILED[endpoint]}: ${message}${target}${request}${words}${rest}`;
}

const FAILED: Record<Endpoint, string> = {
  list_prompts: ' cannot be listed',
  list_datasets: ': its datasets cannot be listed',
  get_prompt: ': the details of a FAILED prompt cannot be read',
};

/** What addresses of pages to log in have in common. */
const LOGIN = /log-?[io]n|sign-?in|\bsso\b|\bsaml|oauth|openid|authoriz|\bauth\b/i;
const LOGIN_ADVICE =
  'This looks like a page to log in, which evalwatch cannot do: check base_url and the API key';

function pageWarning(project: string, kind: Kind): string {
  return `the service has further pages of the ${kind}s of project ${quoteId(project)} (Link with rel="next"), and evalwatch reads only the first: what leaves it counts as gone`;
}

const ADVICE: Partial<Record<PollFailureReason, string>> = {
  auth: 'Check the API key, and whether it may read this project',
  not_found: 'Check the id of the project, and base_url, which must not end in /v2',
  redirect: 'Set base_url to the address that the service redirects to',
  network: 'Check base_url, the network and proxy_url',
  tls: 'Check base_url; if the certificate is from a private authority, set ca_file to the certificate of that authority',
  invalid_response: 'Check that base_url is the address of an Evaluation Service',
  too_large: 'Raise max_response_size or max_items',
};

async function connect(config: Config, context: Context): Promise<readonly Connection[]> {
  const { tryConnections } = await import('../connections.ts');
  const { length } = config.projects;
  const connections = await tryConnections(config, context.clock, (count) =>
    context.progress(`tried ${count} of ${length}`),
  );
  context.progress('');
  return connections;
}

/** Loads the configuration, and checks the web configuration file as well. */
async function loadAll(option: string | undefined, context: Context): Promise<Config> {
  const config = await loadConfiguration(option, context, 'without keys');
  const { loadWebConfig } = await import('../../config/web-file/web-file.ts');
  if (config.web.configFile !== undefined) await loadWebConfig(config.web.configFile);
  return config;
}

function printJson(
  planned: readonly PlannedProject[],
  connections: readonly Connection[] | undefined,
  { stdout }: Context,
): Promise<void> {
  const byProject = new Map(connections?.map((each) => [each.project, each]));
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
      ...connectionFields(byProject.get(project.id)),
    })),
  );
}

interface Line {
  /** Set in the first line of each project. */
  readonly project?: ProjectConfig;
  readonly nextRun?: string;
}

const SCHEDULE_COLUMNS: readonly Column<Line>[] = [
  { name: 'project', cell: ({ project }) => project?.id ?? '', isTruncatable: true },
  { name: 'schedule', cell: ({ project }) => project?.schedule ?? '' },
  { name: 'timezone', cell: ({ project }) => project?.timezone ?? '' },
];
const VERBOSE_COLUMNS: readonly Column<Line>[] = [
  ...SCHEDULE_COLUMNS,
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

const CONNECTION_COLUMNS: readonly Column<Connection>[] = [
  { name: 'project', cell: ({ project }) => project, isTruncatable: true },
  {
    name: 'listing',
    cell: ({ failure }) => failure?.error.reason ?? 'ok',
    color: ({ failure }) => (failure === undefined ? 'green' : 'red'),
  },
  { name: 'endpoint', cell: ({ failure }) => failure?.endpoint },
  { name: 'status_code', cell: ({ failure }) => failure?.error.details.statusCode?.toString() },
  ...PROMPT_STATUSES.map((status) => ({
    name: status,
    cell: ({ counts }: Connection) => counts && String(counts.get(status) ?? 0),
  })),
  {
    name: 'unexpected_items',
    cell: ({ counts, unexpected }) => counts && String(unexpected),
  },
  { name: 'size', cell: ({ bytes }) => (bytes === undefined ? undefined : formatSize(bytes)) },
  {
    name: 'duration',
    cell: ({ durationMs }) =>
      durationMs === undefined ? undefined : formatDuration(Math.ceil(durationMs)),
  },
];

function connectionFields(connection: Connection | undefined): object {
  if (connection === undefined) return {};
  const { failure, counts, paged, unexpected, bytes, durationMs } = connection;
  const { message, reason, details } = failure?.error ?? {};
  return {
    connection: {
      endpoint: failure?.endpoint ?? null,
      reason: reason ?? null,
      status_code: details?.statusCode ?? null,
      message: message ?? null,
      url: details?.url ?? null,
      location: details?.location ?? null,
      detail: details?.detail ?? null,
      paged,
      prompts: counts
        ? Object.fromEntries(PROMPT_STATUSES.map((status) => [status, counts.get(status) ?? 0]))
        : null,
      unexpected_items: counts ? unexpected : null,
      bytes: bytes ?? null,
      duration_ms: durationMs === undefined ? null : Math.ceil(durationMs),
    },
  };
}

/** `812 B`, `4.0 KiB`, `12.3 MiB`. */
function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const isLarge = bytes >= 1024 ** 2;
  return `${(bytes / (isLarge ? 1024 ** 2 : 1024)).toFixed(1)} ${isLarge ? 'MiB' : 'KiB'}`;
}

function limitCell(status: UnfinishedStatus, { expect }: ProjectConfig): string {
  const limit = limitText(expect.limits[status]);
  return limit === 'auto' ? `auto (${formatDuration(DEFAULT_LIMIT_MS[status])} at first)` : limit;
}

/** The limit as the configuration writes it. */
function limitText(limit: ConfiguredLimit): string {
  return typeof limit === 'number' ? formatDuration(limit) : limit;
}

async function printTables(
  planned: readonly PlannedProject[],
  connections: readonly Connection[] | undefined,
  { verbose }: CheckOptions,
  { stdout }: Context,
): Promise<void> {
  const lines = planned.flatMap(({ project, nextRuns }): readonly Line[] =>
    verbose
      ? nextRuns.map((at, index) => {
          const nextRun = formatZonedTime(at, project.timezone);
          return index === 0 ? { project, nextRun } : { nextRun };
        })
      : [{ project }],
  );
  const columns = verbose ? VERBOSE_COLUMNS : SCHEDULE_COLUMNS;
  await stdout.writeLines(tableLines(lines, columns, stdout));
  await stdout.write('\n');
  await stdout.writeLines(tableLines(planned, EXPECTATION_COLUMNS, stdout));
  if (connections === undefined) return;
  await stdout.write('\n');
  await stdout.writeLines(tableLines(connections, CONNECTION_COLUMNS, stdout));
}

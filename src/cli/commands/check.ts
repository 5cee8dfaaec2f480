import { formatDuration } from '../../domain/options.ts';
import { type Config, type ProjectConfig, ConfigError } from '../../config/config.ts';
import { commandName } from '../../config/environment.ts';
import { inForce } from '../../config/in-force.ts';
import { loadWebConfig } from '../../config/web-file.ts';
import { type ConfiguredLimit, DEFAULT_LIMIT_MS } from '../../domain/limits.ts';
import type { Receiver } from '../../domain/receiver.ts';
import type { UnfinishedStatus } from '../../domain/status.ts';
import { visible, visibleJson } from '../../domain/visible.ts';
import { parseSchedule } from '../../schedule/cron.ts';
import { nextPause } from '../../schedule/pause.ts';
import type { Context, Define } from '../command.ts';
import { configOption, jsonOption, type Options } from '../options.ts';
import { quoteWord } from '../output.ts';
import { describeFile, loadConfiguration } from '../query.ts';
import { type Column, createTable, toJsonDocument, toJsonLine } from '../table.ts';
import {
  CONNECTION_COLUMNS,
  type Connection,
  connectionFields,
  tryConnections,
} from './connect.ts';
import { findAll } from './findings.ts';

interface CheckOptions extends Options {
  readonly connect?: true;
  readonly verbose?: true;
  readonly print?: true;
}

const HELP = `
Opens no store, sends no message, and no request without --connect. With it, sends each request of the daemon once for
each project: the prompts, the datasets if they are watched, and the details of one FAILED prompt. Prints how many prompts
there are by status, how large the listing is and how long it took.

For a project that is paused or has maintenance, prints its pause of now or the next one. polls says whether it is polled
meanwhile.

Limits are printed as configured. \`auto\` is learned from the project's own prompts; until enough are known, the time in
parentheses applies.

Warns of what may be wrong, such as a base_url that ends in /v2, or a variable that is not set. Exits 1 if a request fails,
or if a key, an address or a secret is unusable or its file is missing. Exits 2 with every error of the configuration.

Examples:
  evalwatch check --config config/evalwatch.yaml
  evalwatch check --connect
  evalwatch check --json
  evalwatch check --print > in-force.json`;

export const defineCheck: Define = (command, run) => {
  command
    .addOption(configOption())
    .option('--connect', 'also make each request of the daemon once for each project')
    .option('--verbose', 'also print the next five runs of each schedule')
    .option(
      '--print',
      'only print the configuration with all defaults and without secrets, as JSON',
    )
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(run(check));
};

async function check(context: Context, options: CheckOptions): Promise<number> {
  const { stdout } = context;
  const file = options.config;
  const config = await loadAll(file, context).catch(async (error: unknown) => {
    if (!(options.json && error instanceof ConfigError)) throw error;
    await stdout.write(toJsonLine({ errors: error.faults }));
    return undefined;
  });
  if (config === undefined) return 2;
  if (options.print) {
    await stdout.write(`${visibleJson(JSON.stringify(inForce(config), null, 2))}\n`);
    return 0;
  }
  if (!options.json) {
    const others = config.sources.flatMap(({ path, projects }) =>
      projects === undefined ? [] : [`Projects file: ${visible(path)} (${projects.length})\n`],
    );
    const first = `Configuration: ${visible(describeFile(file, context.env))}\n`;
    await stdout.write(`${[first, ...others].join('')}\n`);
  }
  const planned = planProjects(config.projects, context.clock.now());
  const connections = options.connect ? await tryConnections(config, context) : undefined;
  await stdout.write(
    options.json
      ? jsonOf(planned, connections)
      : tablesOf(config, planned, connections, options, context),
  );
  const findings = await findAll(config, planned, connections, context.clock);
  for (const { message, isError } of findings) if (!isError) context.warn(`warning: ${message}`);
  const faults = findings.filter(({ isError }) => isError);
  for (const { message } of faults) context.warn(`error: ${message}`);
  if (faults.length > 0) return 1;
  if (!options.json) {
    const named = file === undefined ? '' : ` --config ${quoteWord(file)}`;
    const start = visible(`${commandName(context.env)} run${named} --watch-config`);
    await stdout.write(`\nOK. This command starts the daemon: ${start}\n`);
  }
  return 0;
}

/** Loads the configuration, and checks the web configuration file as well. */
async function loadAll(option: string | undefined, context: Context): Promise<Config> {
  const config = await loadConfiguration(option, context.env, 'without keys');
  if (config.web.configFile !== undefined) await loadWebConfig(config.web.configFile);
  return config;
}

function jsonOf(
  planned: readonly PlannedProject[],
  connections: readonly Connection[] | undefined,
): string {
  const byProject = new Map(connections?.map((each) => [each.project, each]));
  const timeText = (at: number | undefined) =>
    at === undefined ? null : new Date(at).toISOString();
  const rows = planned.map(({ project, nextRuns, requestsPerDay, pause }) => ({
    project: project.id,
    schedule: project.schedule,
    timezone: project.timezone,
    next_runs: nextRuns.map(timeText),
    requests_per_day: requestsPerDay.ordinary,
    idle_schedule: project.idleSchedule ?? null,
    idle_requests_per_day: requestsPerDay.idle ?? null,
    pause: pause
      ? { from: timeText(pause.from), until: timeText(pause.until), polls: pause.polls }
      : null,
    team: project.team || null,
    expect: {
      max_pending: limitText(project.expect.limits.PENDING),
      max_running: limitText(project.expect.limits.RUNNING),
      max_failure_ratio: project.expect.maxFailureRatio ?? 'off',
    },
    ...connectionFields(byProject.get(project.id)),
  }));
  return toJsonDocument(rows);
}

interface Line {
  /** Set in the first line of each project. */
  readonly planned?: PlannedProject;
  readonly nextRun?: string;
}

const SCHEDULE_COLUMNS: readonly Column<Line>[] = [
  ['project', ({ planned }) => planned?.project.id ?? ''],
  ['schedule', ({ planned }) => planned?.project.schedule ?? ''],
  ['timezone', ({ planned }) => planned?.project.timezone ?? ''],
  ['requests_per_day', ({ planned }) => planned?.requestsPerDay.ordinary.toString() ?? ''],
];
const IDLE_COLUMNS: readonly Column<PlannedProject>[] = [
  ['project', ({ project }) => project.id],
  ['idle_schedule', ({ project }) => project.idleSchedule],
  ['requests_per_day', ({ requestsPerDay }) => requestsPerDay.idle?.toString()],
];
const PAUSE_COLUMNS: readonly Column<PlannedProject>[] = [
  ['project', ({ project }) => project.id],
  ['paused_from', ({ pause, project }) => zonedTime(pause?.from, project) ?? 'now'],
  ['paused_until', ({ pause, project }) => zonedTime(pause?.until, project)],
  ['polls', ({ pause }) => pause?.polls],
];
const VERBOSE_COLUMNS: readonly Column<Line>[] = [
  ...SCHEDULE_COLUMNS,
  ['next_runs', ({ nextRun }) => nextRun],
];

const EXPECTATION_COLUMNS: readonly Column<PlannedProject>[] = [
  ['project', ({ project }) => project.id],
  ['team', ({ project }) => project.team || undefined],
  ['max_pending', ({ project }) => limitCell('PENDING', project)],
  ['max_running', ({ project }) => limitCell('RUNNING', project)],
  ['max_failure_ratio', ({ project }) => String(project.expect.maxFailureRatio ?? 'off')],
];

const RECEIVER_COLUMNS: readonly Column<Receiver>[] = [
  ['receiver', ({ name }) => name],
  ['type', ({ type }) => type],
  ['on', ({ on }) => on.join(', ')],
  ['teams', ({ teams }) => teams && [...teams].join(', ')],
  [
    'projects',
    ({ teams, projects }) => (projects ? [...projects].join(', ') : teams ? undefined : 'all'),
  ],
];

function limitCell(status: UnfinishedStatus, { expect }: ProjectConfig): string {
  const limit = limitText(expect.limits[status]);
  return limit === 'auto' ? `auto (${formatDuration(DEFAULT_LIMIT_MS[status])} at first)` : limit;
}

/** The limit as the configuration writes it. */
function limitText(limit: ConfiguredLimit): string {
  return typeof limit === 'number' ? formatDuration(limit) : limit;
}

function tablesOf(
  { notify }: Config,
  planned: readonly PlannedProject[],
  connections: readonly Connection[] | undefined,
  { verbose }: CheckOptions,
  { stdout }: Context,
): string {
  const lines = planned.flatMap((each): readonly Line[] =>
    verbose
      ? each.nextRuns.map((at, index) => {
          const nextRun = formatZonedTime(at, each.project.timezone);
          return index === 0 ? { planned: each, nextRun } : { nextRun };
        })
      : [{ planned: each }],
  );
  const idle = planned.filter(({ project }) => project.idleSchedule !== undefined);
  const paused = planned.filter(({ pause }) => pause !== undefined);
  const tables = [
    createTable(verbose ? VERBOSE_COLUMNS : SCHEDULE_COLUMNS, stdout)(lines),
    ...(idle.length === 0 ? [] : [createTable(IDLE_COLUMNS, stdout)(idle)]),
    ...(paused.length === 0 ? [] : [createTable(PAUSE_COLUMNS, stdout)(paused)]),
    createTable(EXPECTATION_COLUMNS, stdout)(planned),
    ...(notify.length === 0 ? [] : [createTable(RECEIVER_COLUMNS, stdout)(notify)]),
    ...(connections === undefined ? [] : [createTable(CONNECTION_COLUMNS, stdout)(connections)]),
  ];
  return tables.join('\n');
}

interface PlannedProject {
  readonly project: ProjectConfig;
  /** Times of its next 5 runs, epoch ms. The delay by jitter is not included. */
  readonly nextRuns: readonly number[];
  /** Longest time between two runs while prompts wait. */
  readonly intervalMs: number;
  /** Number of requests for listings on an average day, without retries: by the schedule, and by that of an idle project. */
  readonly requestsPerDay: { readonly ordinary: number; readonly idle: number | undefined };
  /** Its pause of this moment, or the next one. */
  readonly pause: ReturnType<typeof nextPause>;
}

const RUN_COUNT = 5;

function planProjects(projects: readonly ProjectConfig[], now: number): readonly PlannedProject[] {
  return projects.map((project) => {
    const schedule = parseSchedule(project.schedule, project.timezone);
    const nextRuns: number[] = [];
    while (nextRuns.length < RUN_COUNT) nextRuns.push(schedule.nextAfter(nextRuns.at(-1) ?? now));
    const requestsOf = (expression: string) => {
      const runs = parseSchedule(expression, project.timezone).runsPerDay(now);
      return Math.ceil(runs * (project.datasets ? 2 : 1));
    };
    const ordinary = requestsOf(project.schedule);
    const idle = project.idleSchedule === undefined ? undefined : requestsOf(project.idleSchedule);
    const intervalMs = schedule.maxIntervalMs(now);
    const pause = nextPause(project.pauses, now);
    return { project, nextRuns, intervalMs, requestsPerDay: { ordinary, idle }, pause };
  });
}

function zonedTime(at: number | undefined, { timezone }: ProjectConfig): string | undefined {
  return at === undefined ? undefined : formatZonedTime(at, timezone);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Formats a time in a time zone, with its offset from UTC: `2026-03-29T09:00:00+02:00`. */
function formatZonedTime(ms: number, timezone: string): string {
  // To create a format takes fifty times as long as to use it.
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat('sv-SE', {
      timeZone: timezone,
      timeZoneName: 'longOffset',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  formats.set(timezone, format);
  // Swedish dates are those of ISO 8601, apart from the sign for minus.
  const [date, time, offset = ''] = format.format(ms).split(' ');
  return `${date}T${time}${offset.replace('GMT', '').replace('\u2212', '-')}`;
}

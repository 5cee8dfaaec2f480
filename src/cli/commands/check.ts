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
import { CONNECTION_COLUMNS, type Connection, tryConnections } from './connect.ts';
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
  const connections = options.connect ? await tryConnections(config, context) : undefined;
  const rows = config.projects.map((project) => toRow(project, connections, context.clock.now()));
  await stdout.write(
    options.json ? toJsonDocument(rows) : tablesOf(config, rows, connections, options, context),
  );
  const findings = await findAll(config, connections, context.clock);
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

const RUN_COUNT = 5;

/** A row of the JSON document. */
type Row = ReturnType<typeof toRow>;

function toRow(
  { id, schedule, idleSchedule, timezone, datasets, pauses, team, expect }: ProjectConfig,
  connections: ReadonlyMap<string, Connection> | undefined,
  now: number,
) {
  const nextRuns: number[] = [];
  const runs = parseSchedule(schedule, timezone);
  while (nextRuns.length < RUN_COUNT) nextRuns.push(runs.nextAfter(nextRuns.at(-1) ?? now));
  // Those for listings on an average day, without retries.
  const requestsOf = (expression: string) =>
    Math.ceil(parseSchedule(expression, timezone).runsPerDay(now) * (datasets ? 2 : 1));
  const pause = nextPause(pauses, now);
  const isoTime = (at: number | undefined) =>
    at === undefined ? null : new Date(at).toISOString();
  return {
    project: id,
    schedule,
    timezone,
    next_runs: nextRuns.map(isoTime),
    requests_per_day: requestsOf(schedule),
    idle_schedule: idleSchedule ?? null,
    idle_requests_per_day: idleSchedule === undefined ? null : requestsOf(idleSchedule),
    pause: pause
      ? { from: isoTime(pause.from), until: isoTime(pause.until), polls: pause.polls }
      : null,
    team: team || null,
    expect: {
      max_pending: limitText(expect.limits.PENDING),
      max_running: limitText(expect.limits.RUNNING),
      max_failure_ratio: expect.maxFailureRatio ?? 'off',
    },
    connection: connections?.get(id),
  };
}

/** The limit as the configuration writes it. */
function limitText(limit: ConfiguredLimit): string {
  return typeof limit === 'number' ? formatDuration(limit) : limit;
}

const SCHEDULE_COLUMNS: readonly Column<Row>[] = [
  ['project', ({ project }) => project],
  ['schedule', ({ schedule }) => schedule],
  ['timezone', ({ timezone }) => timezone],
  ['requests_per_day', ({ requests_per_day }) => String(requests_per_day)],
];
/** With a line for each run; the first one of a project has its other cells. */
const VERBOSE_COLUMNS: readonly Column<{ readonly row: Row; readonly run: number }>[] = [
  ...SCHEDULE_COLUMNS.map(
    ([name, cell]) =>
      [name, ({ row, run }: { row: Row; run: number }) => (run === 0 ? cell(row) : '')] as const,
  ),
  ['next_runs', ({ row, run }) => zonedTime(row.next_runs[run], row)],
];
const IDLE_COLUMNS: readonly Column<Row>[] = [
  ['project', ({ project }) => project],
  ['idle_schedule', ({ idle_schedule }) => idle_schedule ?? undefined],
  ['requests_per_day', ({ idle_requests_per_day }) => idle_requests_per_day?.toString()],
];
const PAUSE_COLUMNS: readonly Column<Row>[] = [
  ['project', ({ project }) => project],
  ['paused_from', (row) => zonedTime(row.pause?.from, row) ?? 'now'],
  ['paused_until', (row) => zonedTime(row.pause?.until, row)],
  ['polls', ({ pause }) => pause?.polls],
];
const EXPECTATION_COLUMNS: readonly Column<Row>[] = [
  ['project', ({ project }) => project],
  ['team', ({ team }) => team ?? undefined],
  ['max_pending', ({ expect }) => limitCell(expect.max_pending, 'PENDING')],
  ['max_running', ({ expect }) => limitCell(expect.max_running, 'RUNNING')],
  ['max_failure_ratio', ({ expect }) => String(expect.max_failure_ratio)],
];

function limitCell(limit: string, status: UnfinishedStatus): string {
  return limit === 'auto' ? `auto (${formatDuration(DEFAULT_LIMIT_MS[status])} at first)` : limit;
}

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

function tablesOf(
  { notify }: Config,
  rows: readonly Row[],
  connections: ReadonlyMap<string, Connection> | undefined,
  { verbose }: CheckOptions,
  { stdout }: Context,
): string {
  const idle = rows.filter((row) => row.idle_schedule !== null);
  const paused = rows.filter(({ pause }) => pause !== null);
  const runs = rows.flatMap((row) => row.next_runs.map((_, run) => ({ row, run })));
  const table = <Item>(columns: readonly Column<Item>[], items: readonly Item[]) =>
    items.length === 0 ? [] : [createTable(columns, stdout)(items)];
  const tables = [
    ...(verbose ? table(VERBOSE_COLUMNS, runs) : table(SCHEDULE_COLUMNS, rows)),
    ...table(IDLE_COLUMNS, idle),
    ...table(PAUSE_COLUMNS, paused),
    ...table(EXPECTATION_COLUMNS, rows),
    ...table(RECEIVER_COLUMNS, notify),
    ...table(CONNECTION_COLUMNS, [...(connections ?? [])]),
  ];
  return tables.join('\n');
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Formats a time in the zone of a project, with its offset from UTC: `2026-03-29T09:00:00+02:00`. */
function zonedTime(iso: string | null | undefined, { timezone }: Row): string | undefined {
  if (typeof iso !== 'string') return undefined;
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
  const [date, time, offset = ''] = format.format(Date.parse(iso)).split(' ');
  return `${date}T${time}${offset.replace('GMT', '').replace('\u2212', '-')}`;
}

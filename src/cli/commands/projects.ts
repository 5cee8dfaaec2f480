import { Option } from 'commander';
import type { ProjectConfig } from '../../config/config.ts';
import { PROMPT_STATUSES } from '../../domain/status.ts';
import { grouped } from '../../domain/words.ts';
import type { ProjectSnapshot } from '../../monitor/ports/store.ts';
import { projectFields, type ProjectInMemory, type ProjectState } from '../../rows/fields.ts';
import type { ProjectFields } from '../../rows/schema.ts';
import { parseSchedule } from '../../schedule/cron.ts';
import { pauseAt } from '../../schedule/pause.ts';
import type { Context, Define } from '../command.ts';
import { addStoreOptions, jsonOption, type Options } from '../options.ts';
import { timeText } from '../output.ts';
import { type Format, printRows, withReader } from '../query.ts';
import { statusColor } from '../table.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Maximum number of failures that are counted for a project. */
const MAX_COUNTED = 100_000;

/** Those that the store and the configuration say. */
const STATES = ['down', 'new', 'up', 'paused'] as const satisfies readonly ProjectState[];
type State = (typeof STATES)[number];

interface Row extends ProjectFields {
  readonly failures_24h: number;
}

const FORMAT: Format<Row> = {
  noun: 'projects',
  columns: [
    ['project', (row) => row.project],
    ['state', stateOf, { color: (row) => (stateOf(row) === 'down' ? 'red' : undefined) }],
    ['reason', (row) => row.reason ?? undefined],
    ['last_success', ({ last_success }) => timeText(last_success)],
    ['next_poll', nextPollText, { isOptional: true }],
    ...PROMPT_STATUSES.map(
      (status) =>
        [
          status,
          (row: Row) => grouped(row.prompts[status]),
          { color: (row: Row) => (row.prompts[status] > 0 ? statusColor(status) : undefined) },
        ] as const,
    ),
    ['failures_24h', ({ failures_24h }) => grouped(failures_24h)],
    ['team', (row) => row.team ?? undefined],
  ],
};

function stateOf({ pause, last_poll, up }: ProjectFields): State {
  if (pause?.polls === 'stop') return 'paused';
  if (last_poll === null) return 'new';
  return up ? 'up' : 'down';
}

/** The next poll; in a maintenance without polls its end. */
function nextPollText({ next_poll, pause }: ProjectFields): string | undefined {
  return pause?.polls === 'stop' && pause.until !== null
    ? `after ${timeText(pause.until)}`
    : timeText(next_poll);
}

const HELP = `
Reads the store and the configuration, also while no daemon runs: next_poll is the next run of the schedule. Those that
are down come first. With --store, nothing is known of schedules, teams and pauses.

Examples:
  evalwatch projects
  evalwatch projects --state down --json
  evalwatch projects --team search`;

interface ProjectsOptions extends Options {
  readonly team?: string;
  readonly state?: State;
}

export const defineProjects: Define = (command, run) => {
  addStoreOptions(command)
    .option('--team <name>', 'only projects of this team')
    .addOption(new Option('--state <state>', 'only projects in this state').choices(STATES))
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action(run(projects));
};

async function projects(context: Context, options: ProjectsOptions): Promise<number> {
  const now = context.clock.now();
  const rows = await withReader(options, context, async ({ reader, projects: configured }) => {
    const byId = new Map(configured.map((project) => [project.id, project]));
    const { projects: snapshots } = await reader.snapshot();
    const failures = await reader.failureCounts({
      since: now - DAY_MS,
      limitPerProject: MAX_COUNTED,
    });
    const counts = new Map(failures.map(({ project, count }) => [project, count]));
    return snapshots.map((snapshot): Row => {
      const project = byId.get(snapshot.project);
      const fields = projectFields(snapshot, project && inMemory(project, snapshot, now));
      return { ...fields, failures_24h: counts.get(snapshot.project) ?? 0 };
    });
  });
  const { team, state } = options;
  const wanted = rows.filter(
    (row) =>
      (team === undefined || row.team === team) && (state === undefined || stateOf(row) === state),
  );
  const rankOf = (row: Row) => STATES.indexOf(stateOf(row));
  const sorted = wanted.toSorted((one, other) => rankOf(one) - rankOf(other));
  await printRows(sorted, FORMAT, options, context);
  return 0;
}

/** Returns what a daemon would have in memory, as far as the store and the configuration say it. */
function inMemory(
  project: ProjectConfig,
  { health, listings }: ProjectSnapshot,
  now: number,
): ProjectInMemory {
  const { schedule, idleSchedule = schedule, timezone } = project;
  const isIdle = health.up && listings.get('prompt')?.isIdle === true;
  const pause = pauseAt(project.pauses, now);
  const next = parseSchedule(isIdle ? idleSchedule : schedule, timezone).nextAfter(now);
  const nextPollAt = pause?.polls === 'stop' ? undefined : next;
  return { ...project, health, nextPollAt, expectations: undefined, pause };
}

import { ownTurn } from '../../domain/turns.ts';
import { NO_PROMPTS } from '../../domain/experiment.ts';
import { isStuck, type StateExpectation, expectationIn } from '../../domain/limits.ts';
import { UNFINISHED_STATUSES } from '../../domain/status.ts';
import type { PromptStatus, UnfinishedStatus } from '../../domain/status.ts';
import { unlessStoreFails } from '../../monitor/errors.ts';
import type { ProjectSnapshot, StatusRow } from '../../monitor/ports/store.ts';
import type { ProjectState } from '../../rows/fields.ts';
import type { ShownProject, WebContent } from '../content.ts';
import { historyStart, SPAN_MS, statusHistory, type StatusHistory } from './plot.ts';
import { DAY_MS, type FailureTotal } from './text.ts';

/** Delay of a poll, ms, that a working scheduler never reaches. */
const LATE_MS = 60_000;

function stateOf(project: ShownProject, now: number): ProjectState {
  const { health, isHealthKnown, nextPollAt, pause } = project;
  if (pause?.polls === 'stop') return 'paused';
  if (!isHealthKnown) return 'unknown';
  if (health.lastPollAt !== undefined && !health.up) return 'down';
  if (nextPollAt !== undefined && nextPollAt < now - LATE_MS) return 'late';
  return health.up ? 'up' : 'new';
}

/** Whether the statuses of the project are out of date, because it is not polled or its polls fail. */
export function isUnmonitored({ state }: Pick<ProjectView, 'state'>): boolean {
  return state === 'down' || state === 'late';
}

/** Maximum number of transitions behind the plots, so that a busy day does not delay a scrape. */
const MAX_MOVES = 20_000;
/** Maximum number of failures that are counted for a project; takes SQLite 20 ms. */
const MAX_COUNTED = 100_000;
const CAUSES_SHOWN = 10;
const WAITING_SHOWN = 10;
/** Maximum numbers of rows in the lists of the overview, and of the page of a project. */
export const ROWS_SHOWN = {
  overview: { failures: 10, transitions: 20, prompts: 0, experiments: 0 },
  project: { failures: 20, transitions: 30, prompts: 50, experiments: 20 },
} as const;
/** Maximum number of moves on the page of a prompt. */
export const MOVES_SHOWN = 100;

/** What a page shows, of all projects or of one. */
export interface PageData {
  /** The configured projects, those that need attention first. */
  readonly views: readonly ProjectView[];
  /** Undefined while the store cannot be read. */
  readonly store: Reading | undefined;
}

/** Result of one reading of the store: moves, failures and causes of the last day, and the rows of each list. */
export type Reading = Awaited<ReturnType<typeof read>>;

/** What the page of an experiment, and of a prompt, shows. */
export type ExperimentData = NonNullable<Awaited<ReturnType<typeof readExperiment>>>;
export type PromptData = NonNullable<Awaited<ReturnType<typeof readPrompt>>>;

/** A configured project with its rows of the store. */
export interface ProjectView {
  readonly watched: ShownProject;
  readonly state: ProjectState;
  /** Undefined while the store cannot be read. */
  readonly snapshot: ProjectSnapshot | undefined;
  /** Failures of the last day, or of the retention if that is shorter; undefined while the store cannot be read. */
  readonly failures: FailureTotal | undefined;
  /** The prompt that has waited longest in each status; statuses without prompts are absent. */
  readonly longest: readonly (Wait & { readonly status: UnfinishedStatus })[];
  readonly hasStuckPrompts: boolean;
}

/** Time that a prompt has been in its status, compared with what is expected. */
export interface Wait {
  readonly ms: number;
  /** Undefined if nothing is expected, or while it is unknown. */
  readonly expectation: StateExpectation | undefined;
  /** Whether it is beyond the limit. False unless the project is up: the prompt may have moved meanwhile. */
  readonly isStuck: boolean;
}

/** Reads what the overview shows. */
export async function readOverview(content: WebContent, now: number): Promise<PageData> {
  const store = await unlessStoreFails(() => read(content, now, ROWS_SHOWN.overview));
  await ownTurn();
  return { store, views: viewsOf(content.projects(), store, now).toSorted(byUrgency) };
}

/**
 * Reads what the page of a project shows, its prompts in one status or all of them; undefined if the project is neither
 * configured nor stored.
 */
export async function readProject(
  content: WebContent,
  project: string,
  { status, now }: { status: PromptStatus | undefined; now: number },
): Promise<PageData | undefined> {
  const found = await readIn(content, project, () =>
    read(content, now, ROWS_SHOWN.project, project, status),
  );
  return found && { store: found.store, views: viewsOf(found.configured, found.store, now) };
}

/**
 * Reads what the page of an experiment shows, without a row if no prompt is in it; undefined if its project is neither configured
 * nor stored.
 */
export async function readExperiment(
  content: WebContent,
  project: string,
  experiment: string,
  { status, now }: { status: PromptStatus | undefined; now: number },
) {
  const { prompts: maxPrompts, failures: maxFailures } = ROWS_SHOWN.project;
  const of = { project, experiment };
  const found = await readIn(content, project, async () => {
    const [[row], causes, failures, prompts] = await Promise.all([
      content.store.experiments(of),
      content.store.causes({ ...of, since: 0, limit: CAUSES_SHOWN }),
      content.store.failures({ ...of, limit: maxFailures }),
      content.store.statuses({ ...of, status, limit: maxPrompts }),
    ]);
    return { row, causes, failures, prompts };
  });
  return found && { store: found.store, views: viewsOf(found.configured, undefined, now) };
}

/**
 * Reads what the page of a prompt shows, without a row if it is gone or unknown, and one move more than are shown; undefined if
 * its project is neither configured nor stored.
 */
export async function readPrompt(
  content: WebContent,
  of: Pick<StatusRow, 'project' | 'promptId'>,
  now: number,
) {
  const found = await readIn(content, of.project, async () => {
    const [[row], moves, failures] = await Promise.all([
      content.store.statuses(of),
      content.store.transitions({ ...of, limit: MOVES_SHOWN + 1 }),
      content.store.failures({ ...of, limit: ROWS_SHOWN.project.failures }),
    ]);
    return { row, moves, failures };
  });
  return found && { store: found.store, views: viewsOf(found.configured, undefined, now) };
}

/**
 * Reads something in a project, and whether the project is configured; undefined if it is neither configured nor stored. What is read
 * is undefined while the store cannot be read.
 */
async function readIn<Rows>(content: WebContent, project: string, readRows: () => Promise<Rows>) {
  const configured = content.project(project);
  const isKnown = configured !== undefined || (await content.store.projects()).includes(project);
  if (!isKnown) return undefined;
  const store = await unlessStoreFails(readRows);
  await ownTurn();
  return { store, configured: configured === undefined ? [] : [configured] };
}

/** Reads the rows of one project or of all. */
async function read(
  { store, snapshot: readSnapshot, retentionMs }: WebContent,
  now: number,
  limits: (typeof ROWS_SHOWN)[keyof typeof ROWS_SHOWN],
  project?: string,
  status?: PromptStatus,
) {
  const dayAgo = now - DAY_MS;
  const reading = readSnapshot(project);
  const history = { project, since: historyStart(now), spanMs: SPAN_MS, limit: MAX_MOVES };
  const [
    snapshot,
    { moves, since },
    counts,
    causes,
    failures,
    transitions,
    prompts,
    waiting,
    experiments,
    withoutExperiment,
  ] = await Promise.all([
    reading,
    store.moves(history),
    store.failureCounts({ project, since: dayAgo, limitPerProject: MAX_COUNTED }),
    store.causes({ project, since: dayAgo, limit: CAUSES_SHOWN }),
    store.failures({ project, limit: limits.failures }),
    store.transitions({ project, limit: limits.transitions }),
    limits.prompts === 0 ? [] : store.statuses({ project, status, limit: limits.prompts }),
    reading.then(({ projects }) => longestWaiting(store, projects)),
    project === undefined ? [] : store.experiments({ project, limit: limits.experiments }),
    project === undefined ? NO_PROMPTS : store.withoutExperiment(project),
  ]);
  return {
    snapshot,
    moves,
    /** Time before which the moves are unknown, because of retention or of the maximum. Epoch ms. */
    knownSince: Math.max(since, now - retentionMs),
    /** Projects without any are absent. */
    failureCounts: new Map(counts.map((each) => [each.project, each.count])),
    causes,
    failures,
    transitions,
    /** Longest first. */
    waiting,
    prompts,
    experiments,
    withoutExperiment,
  };
}

function viewsOf(
  projects: readonly ShownProject[],
  reading: Reading | undefined,
  now: number,
): readonly ProjectView[] {
  const snapshots = new Map(reading?.snapshot.projects.map((each) => [each.project, each]));
  return projects.map((watched) => {
    const state = stateOf(watched, now);
    const snapshot = snapshots.get(watched.id);
    const oldest = snapshot?.listings.get('prompt')?.oldest;
    const longest = UNFINISHED_STATUSES.flatMap((status) => {
      const since = oldest?.get(status);
      if (since === undefined) return [];
      return [{ status, ...waitOf({ status, since }, { watched, state }, now) }];
    });
    const count = reading?.failureCounts.get(watched.id) ?? 0;
    return {
      watched,
      state,
      snapshot,
      failures: reading && { count, isCapped: count >= MAX_COUNTED },
      longest,
      hasStuckPrompts: longest.some((wait) => wait.isStuck),
    };
  });
}

/** Compares the wait of a prompt with what is expected. `project` is undefined if it is not configured. */
export function waitOf(
  { status, since }: Pick<StatusRow, 'status' | 'since'>,
  project: Pick<ProjectView, 'watched' | 'state'> | undefined,
  now: number,
): Wait {
  const ms = now - since;
  const expectation = expectationIn(status, project?.watched.expectations);
  return { ms, expectation, isStuck: project?.state === 'up' && isStuck(ms, expectation) };
}

/**
 * Returns the prompts of these projects that have waited longest. Reads one project and status after the other, the oldest
 * first, until no other one can have a prompt that has waited longer: most often the first is enough.
 */
async function longestWaiting(
  store: Pick<WebContent['store'], 'statuses'>,
  projects: readonly ProjectSnapshot[],
): Promise<readonly StatusRow[]> {
  const states = projects
    .flatMap(({ project, listings }) =>
      Array.from(listings.get('prompt')?.oldest ?? [], ([status, since]) => {
        return { project, status, since };
      }),
    )
    .toSorted((a, b) => a.since - b.since);
  let longest: readonly StatusRow[] = [];
  for (const { project, status, since } of states) {
    const last = longest[WAITING_SHOWN - 1];
    if (last !== undefined && last.since <= since) break;
    const rows = await store.statuses({ project, status, order: 'oldest', limit: WAITING_SHOWN });
    longest = longest
      .concat(rows)
      .toSorted((a, b) => a.since - b.since)
      .slice(0, WAITING_SHOWN);
  }
  return longest;
}

/**
 * Order of projects: unmonitored ones by the time of their last success, then those not polled yet or unknown, those with
 * stuck prompts, those with failures, and the others. Equal ones are ordered by the newest failure, then by id.
 */
function byUrgency(a: ProjectView, b: ProjectView): number {
  const [rankA, rankB] = [rankOf(a), rankOf(b)];
  if (rankA !== rankB) return rankA - rankB;
  if (isUnmonitored(a)) {
    const since = ({ watched }: ProjectView) => watched.health.lastSuccessAt ?? 0;
    if (since(a) !== since(b)) return since(a) - since(b);
  } else {
    const newest = (view: ProjectView) => (hasFailures(view) && lastFailureAt(view)) || 0;
    if (newest(a) !== newest(b)) return newest(b) - newest(a);
  }
  return a.watched.id < b.watched.id ? -1 : 1;
}

function rankOf(view: ProjectView): number {
  if (isUnmonitored(view)) return 0;
  if (view.state === 'new' || view.state === 'unknown') return 1;
  if (view.hasStuckPrompts) return 2;
  if (view.state === 'paused') return 5;
  return hasFailures(view) ? 3 : 4;
}

function hasFailures({ failures }: ProjectView): boolean {
  return failures !== undefined && failures.count > 0;
}

export function lastFailureAt({ snapshot }: ProjectView): number | undefined {
  return snapshot?.listings.get('prompt')?.lastFailureAt;
}

/** Adds up the failures of these projects; undefined while the store cannot be read. */
export function sumFailures(views: readonly ProjectView[]): FailureTotal | undefined {
  const each = views.map(({ failures }) => failures);
  if (each.includes(undefined)) return undefined;
  return {
    count: each.reduce((sum, failures) => sum + (failures?.count ?? 0), 0),
    isCapped: each.some((failures) => failures?.isCapped),
  };
}

/** The last day of a project; undefined while the store cannot be read. */
export function historyOf(
  { snapshot }: ProjectView,
  reading: Reading | undefined,
  now: number,
): StatusHistory | undefined {
  const counts = snapshot?.listings.get('prompt')?.counts;
  if (snapshot === undefined || counts === undefined || reading === undefined) return undefined;
  const moves = reading.moves.filter(({ project }) => project === snapshot.project);
  const knownSince = Math.max(reading.knownSince, snapshot.configuredAt);
  return statusHistory(counts, moves, { since: historyStart(now), knownSince });
}

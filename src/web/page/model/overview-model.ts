import { isStuck, type StateExpectation } from '../../../domain/expectation.ts';
import { UNFINISHED_STATUSES, type UnfinishedStatus } from '../../../domain/status.ts';
import { expectationIn } from '../../../monitor/ports/expectations.ts';
import { unlessStoreFails } from '../../../monitor/errors.ts';
import type {
  CauseList,
  FailureCount,
  FailureRow,
  MoveHistory,
  ProjectSnapshot,
  StatusRow,
  StoreSnapshot,
  TransitionRow,
} from '../../../monitor/ports/store.ts';
import type { PageContent, ProjectState, ShownProject } from '../content.ts';
import { historyStart, SPAN_MS, statusHistory, type StatusHistory } from './history.ts';
import { isUnmonitored, stateOf } from './project-state.ts';

export const PROJECTS_PER_PAGE = 24;
/** Maximum number of transitions behind the plots, so that a busy day does not delay a scrape. */
const MAX_MOVES = 20_000;
export const DAY_MS = 24 * 60 * 60 * 1000;
/** Maximum number of failures that are counted for a project; takes SQLite 20 ms. */
const MAX_COUNTED = 100_000;
const CAUSES_SHOWN = 10;
const FAILURES_SHOWN = 10;
const WAITING_SHOWN = 10;
const TRANSITIONS_SHOWN = 20;

/** A configured project with its rows of the store. */
export interface ProjectView {
  readonly watched: ShownProject;
  readonly state: ProjectState;
  /** Undefined while the store cannot be read. */
  readonly snapshot: ProjectSnapshot | undefined;
  /** Undefined while the store cannot be read. */
  readonly failures: RecentFailures | undefined;
  /** The prompt that has waited longest in each status; statuses without prompts are absent. */
  readonly longest: readonly LongestWait[];
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

interface LongestWait extends Wait {
  readonly status: UnfinishedStatus;
}

/** Moves to FAILED in the last day, or in the retention of the store if that is shorter. */
export interface RecentFailures {
  readonly count: number;
  /** Whether counting stopped at the maximum; there may be more. */
  readonly isCapped: boolean;
}

/** Result of one reading of the store. */
export interface Reading {
  readonly snapshot: StoreSnapshot;
  readonly history: MoveHistory;
  readonly failureCounts: readonly FailureCount[];
  /** Causes of the failures of the last day. */
  readonly causes: CauseList;
  /** Time before which the moves are unknown, because of retention or of the maximum. Epoch ms. */
  readonly knownSince: number;
}

export interface Overview {
  /** Undefined when the store cannot be read. */
  readonly store: (Reading & Lists) | undefined;
  /** Failing projects first. */
  readonly projects: readonly ProjectView[];
}

interface Lists {
  readonly failures: readonly FailureRow[];
  readonly transitions: readonly TransitionRow[];
  /** Longest first. */
  readonly waiting: readonly StatusRow[];
}

/** Reads the content of the overview; if the store cannot be read, only what is in memory. */
export async function readOverview(content: PageContent, now: number): Promise<Overview> {
  const store = await unlessStoreFails(async () => {
    const reading = await read(content, now);
    const [failures, transitions, waiting] = await Promise.all([
      content.store.failures({ limit: FAILURES_SHOWN }),
      content.store.transitions({ limit: TRANSITIONS_SHOWN }),
      longestWaiting(content.store, reading.snapshot.projects),
    ]);
    return { ...reading, failures, transitions, waiting };
  });
  return { store, projects: viewsOf(content.projects(), store, now).toSorted(byUrgency) };
}

/** Reads counts, causes and the moves of the last day, of one project or of all. */
export async function read(content: PageContent, now: number, project?: string): Promise<Reading> {
  const since = historyStart(now);
  const dayAgo = now - DAY_MS;
  const [snapshot, history, failureCounts, causes] = await Promise.all([
    content.store.snapshot(project),
    content.store.moves({ project, since, spanMs: SPAN_MS, limit: MAX_MOVES }),
    content.store.failureCounts({ project, since: dayAgo, limitPerProject: MAX_COUNTED }),
    content.store.causes({ project, since: dayAgo, limit: CAUSES_SHOWN }),
  ]);
  const knownSince = Math.max(history.since, now - content.retentionMs);
  return { snapshot, history, failureCounts, causes, knownSince };
}

export function viewsOf(
  projects: readonly ShownProject[],
  reading: Reading | undefined,
  now: number,
): readonly ProjectView[] {
  const snapshots = new Map(reading?.snapshot.projects.map((each) => [each.project, each]));
  const counts = new Map(reading?.failureCounts.map(({ project, count }) => [project, count]));
  return projects.map((watched) => {
    const state = stateOf(watched, now);
    const snapshot = snapshots.get(watched.id);
    const oldest = snapshot?.listings.get('prompt')?.oldest;
    const longest = UNFINISHED_STATUSES.flatMap((status) => {
      const since = oldest?.get(status);
      return since === undefined
        ? []
        : [{ status, ...waitOf({ status, since }, { watched, state }, now) }];
    });
    return {
      watched,
      state,
      snapshot,
      failures: reading && recentFailures(counts.get(watched.id) ?? 0),
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
  return { ms, expectation, isStuck: project?.state.kind === 'up' && isStuck(ms, expectation) };
}

function recentFailures(count: number): RecentFailures {
  return { count, isCapped: count >= MAX_COUNTED };
}

/** The last day of a project; undefined while the store cannot be read. */
export function historyOf(
  { snapshot }: ProjectView,
  reading: Reading | undefined,
  now: number,
): StatusHistory | undefined {
  const counts = snapshot?.listings.get('prompt')?.counts;
  if (snapshot === undefined || counts === undefined || reading === undefined) return undefined;
  return statusHistory(
    counts,
    reading.history.moves.filter(({ project }) => project === snapshot.project),
    {
      since: historyStart(now),
      knownSince: Math.max(reading.knownSince, snapshot.configuredAt),
    },
  );
}

/**
 * Returns the prompts of these projects that have waited longest. Reads one project and status after the other, the oldest
 * first, until no other one can have a prompt that has waited longer: most often the first is enough.
 */
export async function longestWaiting(
  store: Pick<PageContent['store'], 'statuses'>,
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
  if (isUnmonitored(a.state)) {
    const since = ({ watched }: ProjectView) => watched.health.lastSuccessAt ?? 0;
    if (since(a) !== since(b)) return since(a) - since(b);
  } else {
    const newest = (view: ProjectView) => (hasFailures(view) && lastFailureAt(view)) || 0;
    if (newest(a) !== newest(b)) return newest(b) - newest(a);
  }
  return a.watched.id < b.watched.id ? -1 : 1;
}

function rankOf(view: ProjectView): number {
  if (isUnmonitored(view.state)) return 0;
  if (view.state.kind === 'new' || view.state.kind === 'unknown') return 1;
  if (view.hasStuckPrompts) return 2;
  return hasFailures(view) ? 3 : 4;
}

function hasFailures({ failures }: ProjectView): boolean {
  return failures !== undefined && failures.count > 0;
}

export function lastFailureAt({ snapshot }: ProjectView): number | undefined {
  return snapshot?.listings.get('prompt')?.lastFailureAt;
}

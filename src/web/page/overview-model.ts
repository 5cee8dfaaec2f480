import { WAITING_STATUSES } from '../../domain/status.ts';
import { StoreError } from '../../monitor/errors.ts';
import type {
  FailureRow,
  MoveHistory,
  ProjectSnapshot,
  StatusRow,
  StoreSnapshot,
  TransitionRow,
} from '../../monitor/ports.ts';
import type { PageContent, ProjectState, WatchedProject } from './content.ts';
import { historyStart, SPAN_MS, statusHistory, type StatusHistory } from './history.ts';
import { isBlind, stateOf } from './project-state.ts';

export const PROJECTS_PER_PAGE = 24;
/** Transitions that a plot is made of, at most: what keeps a busy day from holding up a scrape. */
const MOST_MOVES = 20_000;
const FAILURES_SHOWN = 10;
const WAITING_SHOWN = 10;
const TRANSITIONS_SHOWN = 20;

/** A configured project, and what the store knows of it. */
export interface ProjectView {
  readonly watched: WatchedProject;
  readonly state: ProjectState;
  /** Undefined while the store cannot be read. */
  readonly snapshot: ProjectSnapshot | undefined;
  /** Moves to FAILED in the last day. */
  readonly failedToday: number;
}

/** What one reading of the store brought. */
export interface Reading {
  readonly snapshot: StoreSnapshot;
  readonly history: MoveHistory;
  /** Epoch ms: the moves are known from then on, retention considered. */
  readonly knownSince: number;
}

export interface Overview {
  /** Undefined when the store cannot be read. */
  readonly store: (Reading & Lists) | undefined;
  /** Those in trouble first. */
  readonly projects: readonly ProjectView[];
}

interface Lists {
  readonly failures: readonly FailureRow[];
  readonly transitions: readonly TransitionRow[];
  /** Longest first. */
  readonly waiting: readonly StatusRow[];
}

/** Reads everything that the first page shows; without a store, what is known without it. */
export async function readOverview(content: PageContent, now: number): Promise<Overview> {
  const store = await unlessUnreadable(async () => {
    const reading = await read(content, now);
    const [failures, transitions, waiting] = await Promise.all([
      content.store.failures({ limit: FAILURES_SHOWN }),
      content.store.transitions({ limit: TRANSITIONS_SHOWN }),
      longestWaiting(content.store, reading.snapshot.projects),
    ]);
    return { ...reading, failures, transitions, waiting };
  });
  return { store, projects: viewsOf(content, store, now).toSorted(byTrouble) };
}

/** Counts, and the moves of the last day, of one project or of all. */
export async function read(content: PageContent, now: number, project?: string): Promise<Reading> {
  const since = historyStart(now);
  const [snapshot, history] = await Promise.all([
    content.store.snapshot(),
    content.store.moves({ project, since, spanMs: SPAN_MS, limit: MOST_MOVES }),
  ]);
  return { snapshot, history, knownSince: Math.max(history.since, now - content.retentionMs) };
}

/** What `action` brings; undefined if the store cannot be read. */
export async function unlessUnreadable<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

export function viewsOf(
  content: Pick<PageContent, 'projects'>,
  reading: Reading | undefined,
  now: number,
): readonly ProjectView[] {
  const snapshots = new Map(reading?.snapshot.projects.map((each) => [each.project, each]));
  const failed = new Map<string, number>();
  for (const { project, to, count } of reading?.history.moves ?? []) {
    if (to === 'FAILED') failed.set(project, (failed.get(project) ?? 0) + count);
  }
  return content.projects().map((watched) => ({
    watched,
    state: stateOf(watched, now),
    snapshot: snapshots.get(watched.id),
    failedToday: failed.get(watched.id) ?? 0,
  }));
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
 * The prompts that wait longest, of these projects: the first few of a status are among the first few projects whose
 * longest waiting one waits longest.
 */
export async function longestWaiting(
  store: Pick<PageContent['store'], 'statuses'>,
  projects: readonly ProjectSnapshot[],
): Promise<readonly StatusRow[]> {
  const queries = WAITING_STATUSES.flatMap((status) =>
    projects
      .flatMap(({ project, listings }) => {
        const since = listings.get('prompt')?.oldest.get(status);
        return since === undefined ? [] : [{ project, since }];
      })
      .toSorted((a, b) => a.since - b.since)
      .slice(0, WAITING_SHOWN)
      .map(({ project }) =>
        store.statuses({ project, status, order: 'oldest', limit: WAITING_SHOWN }),
      ),
  );
  const rows = (await Promise.all(queries)).flat();
  return rows.toSorted((a, b) => a.since - b.since).slice(0, WAITING_SHOWN);
}

/** Blind ones first, the longest blind of all at the top; then those with the newest failures, then by id. */
function byTrouble(a: ProjectView, b: ProjectView): number {
  const [rankA, rankB] = [rankOf(a), rankOf(b)];
  if (rankA !== rankB) return rankA - rankB;
  if (isBlind(a.state)) {
    const since = ({ watched }: ProjectView) => watched.health.lastSuccessAt ?? 0;
    if (since(a) !== since(b)) return since(a) - since(b);
  } else if (a.failedToday > 0) {
    const newest = (view: ProjectView) => lastFailureAt(view) ?? 0;
    if (newest(a) !== newest(b)) return newest(b) - newest(a);
  }
  return a.watched.id < b.watched.id ? -1 : 1;
}

function rankOf({ state, failedToday }: ProjectView): number {
  if (isBlind(state)) return 0;
  if (state.kind === 'new') return 1;
  return failedToday > 0 ? 2 : 3;
}

export function lastFailureAt({ snapshot }: ProjectView): number | undefined {
  return snapshot?.listings.get('prompt')?.lastFailureAt;
}

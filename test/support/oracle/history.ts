import { type Move, type Rules, type State, UNKNOWING, takeNote } from './model.ts';
import {
  type JournalEntry,
  type Listing,
  type LogLine,
  type Observation,
  type Run,
  type TransitionRow,
  isInTrouble,
  isOf,
  listingsOf,
  nameOf,
  runsAt,
} from './observation.ts';

/** Compares the recorded transitions with the served listings, and what is shown at the end with what follows from them. */
export function checkHistories(observation: Observation): readonly string[] {
  const listings = listingsOf(observation);
  const differences = observation.transitions
    .filter((row) => !listings.some((listing) => isOf(listing, row)))
    .map((row) => `of nothing watched: ${JSON.stringify(row)}`);
  for (const listing of listings) {
    const replayed = replay(listing, observation);
    if ('difference' in replayed) {
      differences.push(replayed.difference);
      continue;
    }
    const shown = JSON.stringify(shownOf(listing, observation));
    const expected = (state: State) => JSON.stringify(expectedOf(listing, state));
    if (replayed.ends.some((state) => expected(state) === shown)) continue;
    const all = replayed.ends.map(expected).join(' or ');
    differences.push(`${nameOf(listing)} at the end: expected ${all}; shown: ${shown}`);
  }
  return differences;
}

/** Data that the interfaces show of a listing; of datasets only the counts. */
interface View {
  /** Texts of a status and a number. */
  readonly counts: readonly string[];
  /** JSON of an id, a status and how often it was missing. */
  readonly rows?: readonly string[];
  readonly missing?: number;
  readonly gone?: number;
}

function expectedOf({ kind }: Listing, { records, gone }: State): View {
  const present = [...records].filter(([, record]) => !record.gone);
  const counts = countBy(present.map(([, { status }]) => status));
  if (kind === 'dataset') return { counts };
  return {
    counts,
    rows: present
      .map(([id, { status, missing }]) => JSON.stringify([id, status, missing]))
      .toSorted(),
    missing: present.filter(([, { missing }]) => missing > 0).length,
    gone,
  };
}

function shownOf({ project, kind }: Listing, { samples, statuses }: Observation): View {
  const prefix = `evalwatch_${kind}s{project="${project}",status="`;
  const counts = [...samples]
    .filter(([series, count]) => series.startsWith(prefix) && count > 0)
    .map(([series, count]) => `${series.slice(prefix.length, -2)} ${count}`)
    .toSorted();
  if (kind === 'dataset') return { counts };
  return {
    counts,
    rows: statuses
      .filter((row) => row.project === project)
      .map(({ prompt_id, status, missing }) => JSON.stringify([prompt_id, status, missing]))
      .toSorted(),
    missing: samples.get(`evalwatch_prompts_missing{project="${project}"}`) ?? NaN,
    gone: samples.get(`evalwatch_prompts_gone_total{project="${project}"}`) ?? NaN,
  };
}

function countBy(statuses: readonly string[]): readonly string[] {
  const groups = Map.groupBy(statuses, (status) => status);
  return [...groups].map(([status, group]) => `${status} ${group.length}`).toSorted();
}

/**
 * Possible states of a listing at the end, or the first difference between recorded and served. There is one state, or a few
 * if it is unknown whether a killed daemon recorded the last listing.
 */
type Replay = { readonly ends: readonly State[] } | { readonly difference: string };

/**
 * Replays the journal of one listing beside the recorded transitions. A transition belongs to the last listing that was
 * produced before its time. A listing has all of its transitions, at one time, or none: none only where {@link isDoubtful}.
 */
function replay(listing: Listing, observation: Observation): Replay {
  const entries = observation.journal.filter(
    ({ project, kind }) => project === listing.project && kind === listing.kind,
  );
  const recorded = groupByEntry(
    entries,
    observation.transitions.filter((row) => isOf(listing, row)),
  );
  const stray = recorded.get(undefined)?.[0];
  if (stray !== undefined) {
    return { difference: `${nameOf(listing)}: ${JSON.stringify(stray)} before any listing` };
  }
  let states: readonly State[] = [UNKNOWING];
  for (const [index, entry] of entries.entries()) {
    const rows = recorded.get(entry) ?? [];
    const times = new Set(rows.map(({ time }) => time));
    const mayBeLost =
      rows.length === 0 && isDoubtful(entry, entries[index + 1]?.producedAt, observation);
    const next =
      times.size > 1 ? [] : possibleStates(states, entry, { rows, mayBeLost }, observation);
    if (next.length === 0)
      return { difference: mismatch(listing, entry, rows, states, observation) };
    states = next;
  }
  return { ends: states };
}

function possibleStates(
  states: readonly State[],
  entry: JournalEntry,
  { rows, mayBeLost }: { readonly rows: readonly TransitionRow[]; readonly mayBeLost: boolean },
  rules: Rules,
): readonly State[] {
  const found = written(rows.map((row) => toMove(row)));
  const next = states.flatMap((state) => {
    const noted = takeNote(state, entry, rules);
    return [
      ...(written(noted.moves) === found ? [noted.state] : []),
      ...(mayBeLost ? [state] : []),
    ];
  });
  if (next.length < 2) return next;
  return [...new Map(next.map((state) => [fingerprint(state), state])).values()];
}

/**
 * Whether a daemon may not have recorded a listing: there is no proof that it did, because it was stopped or may have given
 * up its request, or its store could not be written.
 */
function isDoubtful(
  { project, producedAt, finishedAt }: JournalEntry,
  next: number | undefined,
  observation: Observation,
): boolean {
  return (
    isInTrouble(observation, finishedAt) ||
    !surelyNoted(runsAt(observation.runs, producedAt), project, {
      at: producedAt,
      next: next ?? Infinity,
    })
  );
}

function groupByEntry(
  entries: readonly JournalEntry[],
  rows: readonly TransitionRow[],
): ReadonlyMap<JournalEntry | undefined, readonly TransitionRow[]> {
  return Map.groupBy(rows, ({ time }) =>
    entries.findLast(({ producedAt }) => producedAt <= Date.parse(time)),
  );
}

function mismatch(
  listing: Listing,
  entry: JournalEntry,
  rows: readonly TransitionRow[],
  states: readonly State[],
  rules: Rules,
): string {
  const expected = states.map((state) => written(takeNote(state, entry, rules).moves));
  const found = written(rows.map((row) => toMove(row)));
  const times = [...new Set(rows.map(({ time }) => time))].join(', ');
  return `${nameOf(listing)}: listing ${entry.seq} of ${new Date(entry.producedAt).toISOString()} means ${[...new Set(expected)].join(' or ')}; recorded: ${found} ${times}`;
}

function toMove({ prompt_id, dataset_id, from, to }: TransitionRow): Move {
  return { id: prompt_id ?? dataset_id ?? '', from, to };
}

function written(moves: readonly Move[]): string {
  return `[${moves
    .map((move) => JSON.stringify([move.id, move.from, move.to]))
    .toSorted()
    .join()}]`;
}

function fingerprint({ baselined, last, records, gone }: State): string {
  const repeated = last && [last.complete, ...last.statuses, ...last.present];
  const known = [...records].map((record) => JSON.stringify(record)).toSorted();
  return JSON.stringify([baselined, gone, known, repeated]);
}

/** Polls of a project, from the lines of a run; epoch ms, in order. */
interface Polls {
  /** Ends of polls that recorded each listing that they were served. */
  readonly noted: readonly number[];
  /** Ends of polls that may not have, and times of requests that were given up but may have been answered. */
  readonly gaveUp: readonly number[];
}

const NO_POLLS: Polls = { noted: [], gaveUp: [] };
const pollsOfRuns = new WeakMap<Run, ReadonlyMap<string, Polls>>();

/** Whether this run logged a poll of the project that ended at this time or later. */
export function toldOfPollSince(run: Run, project: string, at: number): boolean {
  const { noted, gaveUp } = pollsOf(run, project);
  return Math.max(noted.at(-1) ?? 0, gaveUp.at(-1) ?? 0) >= at;
}

/**
 * Whether one of these runs certainly recorded a listing that was produced at `at`: a poll that recorded its listings ended
 * before `next`, when the next listing was produced, and no request was given up since the poll before it.
 */
function surelyNoted(
  runs: readonly Run[],
  project: string,
  { at, next }: { readonly at: number; readonly next: number },
): boolean {
  const polls = runs.map((run) => pollsOf(run, project));
  const noted = polls.flatMap((each) => each.noted).toSorted((one, other) => one - other);
  const gaveUp = polls.flatMap((each) => each.gaveUp);
  const end = noted.find((time) => time >= at);
  if (end === undefined || end >= next) return false;
  const before = noted.findLast((time) => time < at) ?? -Infinity;
  return !gaveUp.some((time) => time > before && time <= end);
}

/** Caches the polls of a run, which must not poll any more. */
function pollsOf(run: Run, project: string): Polls {
  let polls = pollsOfRuns.get(run);
  if (polls === undefined) {
    polls = new Map(
      [...Map.groupBy(run.lines, (line) => line.project ?? '')].map(([id, lines]) => [
        id,
        { noted: timesOf(lines, hasNoted), gaveUp: timesOf(lines, hasGivenUp) },
      ]),
    );
    pollsOfRuns.set(run, polls);
  }
  return polls.get(project) ?? NO_POLLS;
}

function timesOf(lines: readonly LogLine[], which: (line: LogLine) => boolean): readonly number[] {
  return lines.filter(which).map(({ time }) => Date.parse(time));
}

function hasNoted({ event }: LogLine): boolean {
  return event === 'poll.completed';
}

/**
 * Whether a line reports a poll or request that may have read a whole listing without recording it: a poll requests a
 * listing again if it cannot determine the changes. `poll.recovered` stands for failed polls whose lines were left out.
 */
function hasGivenUp({ event, reason }: LogLine): boolean {
  return (
    event === 'poll.recovered' ||
    event === 'poll.failed' ||
    (event === 'api.retried' && isLoss(reason))
  );
}

/** Whether a listing that was served whole may have been lost on its way, or not been stored. */
function isLoss(reason: string | undefined): boolean {
  return reason === 'timeout' || reason === 'network' || reason === 'store';
}

import type { JournalEntry } from '../../../src/simulator/journal.ts';
import { type Move, type Rules, type State, takeNote, UNKNOWING } from './model.ts';
import {
  isOf,
  type Listing,
  type Observation,
  runAt,
  toldOfPollSince,
  type TransitionRow,
} from './observation.ts';

/** An answer that took longer may have met a client that did not wait for it, ms. */
const SLOW_MS = 1000;

/**
 * What may be known of a listing at the end: one state, or a few where nothing tells whether a daemon that was killed had
 * taken note of the last listing that it was served. Or the first thing that was recorded otherwise than served.
 */
export type Replay = { readonly ends: readonly State[] } | { readonly difference: string };

/**
 * Goes through the journal of one listing beside the transitions that were recorded. A transition belongs to the last
 * listing that was produced before its time, and a listing has all of its transitions, at one time, or none: none only
 * where {@link isDoubtful}.
 */
export function replay(listing: Listing, observation: Observation): Replay {
  const entries = observation.journal.filter(
    ({ project, kind }) => project === listing.project && kind === listing.kind,
  );
  const recorded = groupByEntry(
    entries,
    observation.transitions.filter((row) => isOf(listing, row)),
  );
  const stray = recorded.get(undefined)?.[0];
  if (stray !== undefined) {
    return { difference: `${name(listing)}: ${JSON.stringify(stray)} before any listing` };
  }
  let states: readonly State[] = [UNKNOWING];
  for (const entry of entries) {
    const rows = recorded.get(entry) ?? [];
    const times = new Set(rows.map(({ time }) => time));
    const next = times.size > 1 ? [] : possibleStates(states, entry, rows, observation);
    if (next.length === 0)
      return { difference: mismatch(listing, entry, rows, states, observation) };
    states = next;
  }
  return { ends: states };
}

function possibleStates(
  states: readonly State[],
  entry: JournalEntry,
  rows: readonly TransitionRow[],
  observation: Observation,
): readonly State[] {
  const found = written(rows.map((row) => toMove(row)));
  const mayBeLost = rows.length === 0 && isDoubtful(entry, observation);
  const next = new Map<string, State>();
  for (const state of states) {
    const noted = takeNote(state, entry, observation);
    if (written(noted.moves) === found) next.set(fingerprint(noted.state), noted.state);
    if (mayBeLost) next.set(fingerprint(state), state);
  }
  return [...next.values()];
}

/**
 * Whether a daemon need not have taken note of a listing: no line tells that a poll ended after it, because that daemon
 * was stopped, or the answer was so slow that the client may have given it up.
 */
function isDoubtful(
  { project, producedAt, finishedAt }: JournalEntry,
  { runs }: Observation,
): boolean {
  return (
    finishedAt - producedAt >= SLOW_MS ||
    !toldOfPollSince(runAt(runs, producedAt), project, producedAt)
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
  return `${name(listing)}: listing ${entry.seq} of ${new Date(entry.producedAt).toISOString()} means ${[...new Set(expected)].join(' or ')}; recorded: ${found} ${times}`;
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

function name({ project, kind }: Listing): string {
  return `${kind}s of "${project}"`;
}

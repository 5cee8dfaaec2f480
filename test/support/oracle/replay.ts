import type { JournalEntry } from '../../../src/simulator/world/journal.ts';
import { type Move, type Rules, type State, takeNote, UNKNOWING } from './model.ts';
import {
  type Before,
  isInTrouble,
  isOf,
  type Listing,
  nameOf,
  type Observation,
  runsAt,
  type TransitionRow,
} from './observation.ts';
import { surelyNoted } from './polls.ts';

const NOTHING_BEFORE: Before = { states: new Map(), transitionId: 0 };

/**
 * Possible states of a listing at the end, or the first difference between recorded and served. There is one state, or a few
 * if it is unknown whether a killed daemon recorded the last listing.
 */
export type Replay = { readonly ends: readonly State[] } | { readonly difference: string };

/**
 * Replays the journal of one listing beside the recorded transitions. A transition belongs to the last listing that was
 * produced before its time. A listing has all of its transitions, at one time, or none: none only where {@link isDoubtful}.
 */
export function replay(listing: Listing, observation: Observation): Replay {
  const entries = observation.journal.filter(
    ({ project, kind }) => project === listing.project && kind === listing.kind,
  );
  const { states: known, transitionId: since } = observation.before ?? NOTHING_BEFORE;
  const recorded = groupByEntry(
    entries,
    observation.transitions.filter((row) => row.transition_id > since && isOf(listing, row)),
  );
  const stray = recorded.get(undefined)?.[0];
  if (stray !== undefined) {
    return { difference: `${nameOf(listing)}: ${JSON.stringify(stray)} before any listing` };
  }
  let states = known.get(nameOf(listing)) ?? [UNKNOWING];
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

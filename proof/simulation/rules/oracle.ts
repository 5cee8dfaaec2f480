import type { Settlement } from '../../../src/domain/failure.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import type { FailureRow, StoreReader, TransitionRow } from '../../../src/monitor/ports/store.ts';
import type { Simulation } from '../parts.ts';
import { MISSING_AFTER } from '../scenario.ts';
import { createFinishes } from './finishes.ts';
import { type Move, type ServedListing, type State, UNKNOWING, takeNote } from './model.ts';

/** A position after all transitions and settlements. */
const FINISHES = {
  transition: Number.MAX_SAFE_INTEGER,
  settlement: Number.MAX_SAFE_INTEGER,
  finish: 0,
};
/** Number of polls in a row after which an unstored change is a fault: the poll after a failover notices it. */
const MAX_OVERLOOKED = 3;

/** Moves that a committed listing must have stored. */
interface Batch {
  readonly process: string;
  /** Texts of the moves, sorted. */
  readonly moves: readonly string[];
  /** Rows that were found to match these moves. */
  stored: readonly TransitionRow[] | undefined;
  /** Whether its poll, or a later one of its process, has finished: its moves must have been emitted. */
  isReported: boolean;
}

/** The transitions in the store, by id. */
interface StoredMoves {
  readonly byId: ReadonlyMap<number, TransitionRow>;
  readonly ofProject: (project: string) => readonly TransitionRow[];
}

interface Told {
  readonly process: string;
  readonly promptId: string;
  readonly errorId: string;
  /**
   * Whether its report may have begun before a failover lost the failure. Such a report settles nothing, even if the failure
   * is stored again under the same number.
   */
  readonly isOfLost: boolean;
}

/** Records everything served and committed, and compares it with what is stored and emitted. */
export function createOracle(simulation: Simulation) {
  const { course, world } = simulation;
  const { isShared, fault } = course;
  const { projects } = world;
  const states = new Map<string, State>(projects.map((project) => [project, UNKNOWING]));
  const batches = new Map<string, Batch[]>(projects.map((project) => [project, []]));
  /** Listing that was read last, by process and project, until it is committed. */
  const unread = new Map<string, ServedListing>();
  /** Listing that was committed last, by process and project: a poll commits it again if the store lost it. */
  const taken = new Map<string, ServedListing>();
  /** Moves that were emitted, by id. */
  const toldMoves = new Map<number, Move>();
  const toldFailures = new Map<number, Told[]>();
  const settled = new Map<number, Settlement>();
  /** Failures that were pending at a failover: the standby may lack a claim, so that two workers report them. */
  const claimsLost = new Set<number>();
  /**
   * Prompts of the moves that the store lost, by id of the move: a worker may have fetched the error_info before, and report
   * it. The store can give an id again.
   */
  const lost = new Map<number, string>();
  /** Number of polls in a row that found a change and stored nothing, by process and project. */
  const overlooked = new Map<string, number>();
  const finishes = createFinishes(fault);
  const faults: string[] = [];
  let listings = 0;
  let moveCount = 0;

  function take(process: string, project: string): void {
    const key = `${process} ${project}`;
    const entry = unread.get(key);
    const state = states.get(project);
    if (entry === undefined || state === undefined) return;
    unread.delete(key);
    taken.set(key, entry);
    const next = takeNote(state, entry, MISSING_AFTER);
    states.set(project, next.state);
    finishes.take(process, entry, next.state, next.moves);
    const moves = next.moves.map(textOf).toSorted();
    const batch = { process, moves, stored: undefined, isReported: false };
    listings += 1;
    moveCount += next.moves.length;
    if (next.moves.length > 0) batches.get(project)?.push(batch);
  }

  /** Counts a poll that has stored nothing. Another worker may have taken a newer listing since it was read. */
  function stayedUnchanged(process: string, project: string): void {
    const key = `${process} ${project}`;
    const entry = unread.get(key);
    const state = states.get(project);
    if (entry === undefined || state === undefined) return;
    const next = takeNote(state, entry, MISSING_AFTER);
    const { moves } = next;
    const isNews = moves.length > 0 || finishes.isFinishing(entry, next.state);
    const polls = isNews ? (overlooked.get(key) ?? 0) + 1 : 0;
    overlooked.set(key, polls);
    if (polls === MAX_OVERLOOKED) {
      const what = moves.length > 0 ? moves.map(textOf).join() : 'a finish';
      faults.push(`${process} overlooked ${what} of ${project}`);
    }
  }

  function observe(process: string, event: MonitorEvent): void {
    if (event.type === 'record.transition') {
      const { transitionId } = event.transition;
      if (toldMoves.has(transitionId)) faults.push(`transition ${transitionId} was told twice`);
      toldMoves.set(transitionId, event.transition);
    } else if (event.type === 'experiment.finished') finishes.told(process, event.finish);
    else if (event.type === 'prompt.failed') {
      const { transitionId, errorInfo, promptId } = event;
      const told = toldFailures.get(transitionId) ?? [];
      if (lost.get(transitionId) !== promptId) {
        const mayBeToldAgain = claimsLost.has(transitionId);
        if (settled.has(transitionId) && !mayBeToldAgain) {
          faults.push(`failure ${transitionId} was told after its end`);
        }
        if (told.some((each) => each.process === process && each.promptId === promptId)) {
          faults.push(`failure ${transitionId} was told twice by ${process}`);
        }
      }
      const isFirst = !told.some((each) => each.process === process);
      const isOfLost = lost.get(transitionId) === promptId && isFirst;
      told.push({ process, promptId, errorId: errorInfo?.error_id ?? 'none', isOfLost });
      toldFailures.set(transitionId, told);
    } else if (event.type === 'poll.finished') {
      if (event.failure !== undefined) return;
      // The process reported this listing as committed, whatever the store did. Others may have committed a newer one.
      if (!isShared || event.changed) take(process, event.project);
      else stayedUnchanged(process, event.project);
      finishes.reported(process, event.project);
      // Polls of a project do not overlap, so everything that the process has committed for it has been emitted by now.
      const own = batches.get(event.project) ?? [];
      for (let last = own.length - 1; last >= 0; last -= 1) {
        const batch = own[last];
        if (batch?.process !== process) continue;
        if (batch.isReported) break;
        batch.isReported = true;
      }
    }
  }

  function compareMoves({ byId, ofProject }: StoredMoves): readonly string[] {
    const differences: string[] = [];
    for (const project of projects) {
      const rows = ofProject(project);
      let next = 0;
      for (const batch of batches.get(project) ?? []) {
        const { moves, stored, isReported } = batch;
        if (stored === undefined || !areAt(rows, next, stored)) {
          const own = rows.slice(next, next + moves.length);
          const expected = JSON.stringify(moves);
          const found = JSON.stringify(own.map(textOf).toSorted());
          if (expected !== found) {
            return [`transitions of ${project}: expected ${expected}, stored ${found}`];
          }
          batch.stored = own;
        }
        for (const { transitionId } of batch.stored ?? []) {
          if (isReported && !toldMoves.has(transitionId)) {
            differences.push(`transition ${transitionId} was not told`);
          }
        }
        next += moves.length;
      }
      const others = rows.length - next;
      if (others > 0) differences.push(`transitions of ${project} that nothing served: ${others}`);
    }
    for (const [id, told] of toldMoves) {
      const row = byId.get(id);
      if (row === undefined || !isSameMove(row, told)) {
        differences.push(`told, not stored: transition ${id}, ${textOf(told)}`);
      }
    }
    return differences;
  }

  function compareFailures(
    { byId }: StoredMoves,
    failures: readonly FailureRow[],
    isOver: boolean,
    stopped: string | undefined,
  ): readonly string[] {
    const differences: string[] = [];
    const found = new Map<number, FailureRow>();
    for (const failure of failures) found.set(failure.transitionId, failure);
    let failed = 0;
    for (const { transitionId, id, to } of byId.values()) {
      if (to !== 'FAILED') continue;
      failed += 1;
      const failure = found.get(transitionId);
      const told = (toldFailures.get(transitionId) ?? []).filter((each) => each.promptId === id);
      if (failure === undefined) differences.push(`no failure of transition ${transitionId}`);
      else if (failure.settlement === undefined) {
        if (settled.has(transitionId)) differences.push(`failure ${transitionId} is open again`);
        if (isOver) differences.push(`failure ${transitionId} is still pending`);
        if (told.some(({ process, isOfLost }) => process === stopped && !isOfLost)) {
          differences.push(`failure ${transitionId} was told by ${stopped} and not settled`);
        }
      } else {
        const { settlement } = failure;
        const errorId = settlement.errorInfo?.error_id ?? 'none';
        if (!isSameSettlement(settled.get(transitionId) ?? settlement, settlement)) {
          differences.push(`failure ${transitionId} was settled twice`);
        }
        settled.set(transitionId, settlement);
        if (told.length === 0) differences.push(`failure ${transitionId} is settled, not told`);
        else if (!told.some((each) => each.errorId === errorId)) {
          differences.push(`failure ${transitionId} is settled otherwise than told`);
        }
      }
    }
    if (found.size !== failed || failures.length !== failed) {
      differences.push(`${failed} moves to FAILED have ${failures.length} failures`);
    }
    for (const [id, told] of toldFailures) {
      const row = byId.get(id);
      const isKnown = ({ promptId }: Told) =>
        promptId === lost.get(id) || (row?.to === 'FAILED' && row.id === promptId);
      if (!told.every(isKnown)) differences.push(`told, not stored: failure ${id}`);
    }
    return differences;
  }

  /** Compares totals with rows, and the stored state of each prompt with what was served. */
  async function compareStates(
    reader: StoreReader,
    moves: StoredMoves,
    failures: readonly FailureRow[],
  ): Promise<readonly string[]> {
    const [snapshot, statuses] = await Promise.all([reader.snapshot(), reader.statuses({})]);
    const differences: string[] = [];
    const statusesOf = byProject(statuses);
    const failuresOf = byProject(failures);
    for (const { project, listings: figures } of snapshot.projects) {
      const state = states.get(project);
      const prompts = figures.get('prompt');
      if (state === undefined || prompts === undefined) continue;
      const expect = (what: string, expected: unknown, stored: unknown) => {
        const texts = [expected, stored].map((value) => JSON.stringify(value));
        if (texts[0] === texts[1]) return;
        differences.push(`${what} of ${project}: expected ${texts[0]}, stored ${texts[1]}`);
      };
      const records = [...state.records].filter(([, { gone }]) => !gone);
      expect(
        'prompts',
        records.map(([id, { status, missing }]) => `${id} ${status} ${missing}`).toSorted(),
        statusesOf(project)
          .map(({ promptId, status, missing }) => `${promptId} ${status} ${missing}`)
          .toSorted(),
      );
      expect(
        'counts',
        countBy(records.map(([, { status }]) => status)),
        [...prompts.counts]
          .filter(([, n]) => n > 0)
          .map(([status, n]) => `${status} ${n}`)
          .toSorted(),
      );
      expect('gone', state.gone, prompts.goneTotal);
      expect(
        'totals',
        countPairs(moves.ofProject(project)),
        prompts.transitions.map(([from, to, n]) => `${from} ${to} ${n}`).toSorted(),
      );
      const settledRows = failuresOf(project).filter(({ settlement }) => settlement);
      const counted = prompts.errors.reduce((sum, { count }) => sum + count, 0);
      expect('settled failures', settledRows.length, counted);
    }
    return differences;
  }

  /** Compares the stored statuses with those that the service has. */
  async function compareWithWorld(reader: StoreReader): Promise<readonly string[]> {
    const statuses = await reader.statuses({});
    return projects.flatMap((project) => {
      const known = new Map(
        statuses
          .filter((row) => row.project === project)
          .map(({ promptId, status }) => [promptId, status]),
      );
      return [...(world.prompts(project)?.values() ?? [])]
        .filter(({ id, status }) => known.get(id) !== status)
        .map(({ id, status }) => `${id} of ${project} is ${status}, known as ${known.get(id)}`);
    });
  }

  /**
   * Returns the function to call when the store has lost everything from now on, with the rows that it had until then: what
   * it lost must be stored and emitted again.
   */
  function save(): (reader: StoreReader, before: readonly TransitionRow[]) => Promise<void> {
    const savedStates = new Map(states);
    const savedBatches = Array.from(batches, ([project, list]) => [project, [...list]] as const);
    const savedSettled = new Map(settled);
    const takenBefore = new Set(taken.values());
    const restoreFinishes = finishes.save();
    return async (reader, before) => {
      const [moves, failures] = await Promise.all([reader.transitions({}), reader.failures({})]);
      const isStored = new Set(moves.map(({ transitionId }) => transitionId));
      const isSettled = new Set(
        failures.filter((row) => row.settlement).map(({ transitionId }) => transitionId),
      );
      refill(states, savedStates);
      refill(batches, savedBatches);
      refill(settled, savedSettled);
      restoreFinishes();
      for (const { transitionId, settlement } of failures) {
        if (settlement === undefined) claimsLost.add(transitionId);
      }
      for (const [key, entry] of taken) {
        if (!takenBefore.has(entry) && !unread.has(key)) unread.set(key, entry);
      }
      for (const { transitionId, id } of before) {
        if (!isStored.has(transitionId)) lost.set(transitionId, id);
      }
      for (const id of toldMoves.keys()) if (!isStored.has(id)) toldMoves.delete(id);
      for (const [id, told] of toldFailures) {
        if (!isStored.has(id)) toldFailures.delete(id);
        // The store may have lost its settlement, so that the same process may report it again.
        else if (!isSettled.has(id)) {
          toldFailures.set(
            id,
            told.map((each) => ({ ...each, process: `${each.process}, before` })),
          );
        }
      }
    };
  }

  return {
    save,
    /** Records a listing that a process has read whole. */
    read: (process: string, listing: ServedListing) => {
      // A 304 is recorded with the listing that it stands for: the process must not take another one for it.
      unread.set(`${process} ${listing.project}`, listing);
    },
    committed: take,
    observe,
    /**
     * Compares the records with the store. Returns the differences.
     * @param isOver whether nothing may be pending after a long time without faults
     * @param stopped process that stopped in good order, and whose store took everything
     */
    compare: async (reader: StoreReader, isOver: boolean, stopped?: string) => {
      const [newest, failures, { finishes: finished }] = await Promise.all([
        reader.transitions({}),
        reader.failures({}),
        reader.events(FINISHES, Number.MAX_SAFE_INTEGER),
      ]);
      const rows = newest.toSorted((one, other) => one.transitionId - other.transitionId);
      const byId = new Map<number, TransitionRow>();
      for (const row of rows) byId.set(row.transitionId, row);
      const stored: StoredMoves = { byId, ofProject: byProject(rows) };
      return [
        ...faults,
        ...compareMoves(stored),
        ...compareFailures(stored, failures, isOver, stopped),
        ...(await compareStates(reader, stored, failures)),
        ...(await finishes.compare(reader, finished)),
        ...simulation.receivers.compare(stored.ofProject, byProject(finished), isOver),
        ...(isOver ? await compareWithWorld(reader) : []),
      ];
    },
    figures: () => ({
      listings,
      moves: moveCount,
      failures: toldFailures.size,
      finishes: finishes.count(),
    }),
  };
}

function refill<Key, Value>(map: Map<Key, Value>, entries: Iterable<readonly [Key, Value]>): void {
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

function textOf({ id, from, to }: Move): string {
  return `${id} ${from} ${to}`;
}

/** Whether these rows are at this place. */
function areAt(
  rows: readonly TransitionRow[],
  start: number,
  expected: readonly TransitionRow[],
): boolean {
  let place = start;
  for (const before of expected) {
    const row = rows[place];
    if (row?.transitionId !== before.transitionId || !isSameMove(row, before)) return false;
    place += 1;
  }
  return true;
}

function isSameMove(one: Move, other: Move): boolean {
  return one.id === other.id && one.from === other.from && one.to === other.to;
}

function isSameSettlement(one: Settlement, other: Settlement): boolean {
  if (one.errorInfo === undefined || other.errorInfo === undefined) {
    return one.errorInfo === other.errorInfo && one.reason === other.reason;
  }
  return (
    one.errorInfo.error_id === other.errorInfo.error_id &&
    one.errorInfo.error_msg === other.errorInfo.error_msg &&
    one.errorMsgTruncated === other.errorMsgTruncated
  );
}

function countBy(texts: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return Array.from(counts, ([text, count]) => `${text} ${count}`).toSorted();
}

/** Counts each move by its statuses. */
function countPairs(rows: readonly TransitionRow[]): readonly string[] {
  const counts = new Map<string, Map<string, number>>();
  for (const { from, to } of rows) {
    let ofOrigin = counts.get(from);
    if (ofOrigin === undefined) counts.set(from, (ofOrigin = new Map()));
    ofOrigin.set(to, (ofOrigin.get(to) ?? 0) + 1);
  }
  return [...counts]
    .flatMap(([from, ofOrigin]) => Array.from(ofOrigin, ([to, count]) => `${from} ${to} ${count}`))
    .toSorted();
}

/** Groups rows. Returns the function that returns those of a project. */
function byProject<Row extends { readonly project: string }>(
  rows: readonly Row[],
): (project: string) => readonly Row[] {
  const groups = Map.groupBy(rows, ({ project }) => project);
  return (project) => groups.get(project) ?? [];
}

import { isDeepStrictEqual } from 'node:util';
import type { FailureRow, StatusRow, TransitionRow } from '../../src/monitor/ports/store.ts';
import type { World } from '../../src/simulator/world.ts';
import type { Lines } from '../../test/support/evalwatch.ts';

/** Epoch ms. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** Everything to compare once the world stands still and the workers have ended. */
interface Observation {
  readonly world: World;
  /** The last scrapes of all workers, by name and labels as in `name{a="1"}`. */
  readonly samples: ReadonlyMap<string, number>;
  readonly transitions: readonly TransitionRow[];
  readonly failures: readonly FailureRow[];
  readonly statuses: readonly StatusRow[];
  /** Log lines of all workers. */
  readonly lines: Lines['lines'];
  /** Times when the database may not have been reached. */
  readonly troubles: readonly TimeSpan[];
}

/** Returns the differences between what the workers stored, showed and logged, and from what the service has. */
export function differences(observation: Observation): readonly string[] {
  return [
    ...checkWorld(observation),
    ...checkChains(observation),
    ...checkTotals(observation),
    ...checkLines(observation),
    ...checkFailures(observation),
  ];
}

function checkWorld({ world, statuses }: Observation): readonly string[] {
  const shown = new Set(statuses.map((row) => `${row.status} ${row.project}: ${row.promptId}`));
  const real = new Set(
    world.projects.flatMap((project) =>
      Array.from(
        world.prompts(project)?.values() ?? [],
        ({ id, status }) => `${status} ${project}: ${id}`,
      ),
    ),
  );
  return [
    ...[...shown.difference(real)].map((row) => `shown, not so: ${row}`),
    ...[...real.difference(shown)].map((row) => `so, not shown: ${row}`),
  ];
}

/** Checks that the transitions of a record form a chain that ends at its status. */
function checkChains({ transitions, statuses }: Observation): readonly string[] {
  const faults: string[] = [];
  const last = new Map<string, TransitionRow>();
  const ordered = transitions.toSorted((one, other) => one.transitionId - other.transitionId);
  for (const row of ordered) {
    const record = `${row.kind} ${row.project}: ${row.id}`;
    const before = last.get(record);
    last.set(record, row);
    if (before !== undefined && (before.to !== row.from || before.at > row.at)) {
      faults.push(`no chain: ${JSON.stringify(row)} after ${JSON.stringify(before)}`);
    }
  }
  for (const row of statuses) {
    const move = last.get(`prompt ${row.project}: ${row.promptId}`);
    if (move !== undefined && (move.to !== row.status || move.at !== row.since)) {
      faults.push(`${JSON.stringify(row)} does not follow from ${JSON.stringify(move)}`);
    }
  }
  return faults;
}

/** Compares the counters of /metrics with the transitions that they count. */
function checkTotals({ transitions, samples }: Observation): readonly string[] {
  const counted = Map.groupBy(
    transitions,
    ({ kind, project, from, to }) =>
      `evalwatch_${kind}_transitions_total{project="${project}",from="${from}",to="${to}"}`,
  );
  const shown = [...samples].filter(([series, count]) => {
    return count > 0 && /^evalwatch_\w+_transitions_total\{/.test(series);
  });
  return [...new Set([...counted.keys(), ...shown.map(([series]) => series)])].flatMap((series) => {
    const count = counted.get(series)?.length ?? 0;
    const value = samples.get(series);
    return value === count ? [] : [`${series} is ${value}, transitions: ${count}`];
  });
}

/** Checks that each transition has one line, and each listing one baseline. */
function checkLines({ transitions, lines, troubles }: Observation): readonly string[] {
  const faults: string[] = [];
  const told = Map.groupBy(
    lines.filter(({ event }) => /^(?:prompt|dataset)\.transition$/.test(event)),
    (line) => line['transition_id'],
  );
  const rows = new Map(transitions.map((row) => [row.transitionId, row]));
  for (const { transitionId, project, kind, id, from, to } of transitions) {
    const fields = { project, [`${kind}_id`]: id, from, to };
    const own = told.get(transitionId) ?? [];
    const isRight = Object.entries(fields).every(([name, value]) => own[0]?.[name] === value);
    if (own.length === 1 && isRight) continue;
    faults.push(`transition ${transitionId} has ${own.length} lines: ${JSON.stringify(own)}`);
  }
  for (const [id, own] of told) {
    if (!rows.has(Number(id))) faults.push(`told, not stored: ${JSON.stringify(own)}`);
  }
  const baselines = lines.filter(({ event }) => event === 'project.baseline');
  const byListing = Map.groupBy(baselines, (line) => [line['kind'], line['project']].join(' of '));
  for (const [listing, own] of byListing) {
    if (own.length > 1) faults.push(`${own.length} baselines of the kind ${listing}`);
  }
  for (const line of lines.filter(({ level }) => level === 'error')) {
    const isOfTrouble = line.event === 'store.commit_failed' || line.event === 'worker.lease_lost';
    const isExpected = isOfTrouble
      ? isInTrouble(troubles, line)
      : line.event === 'poll.failed' || line.event === 'prompt.failed';
    if (!isExpected) faults.push(`an error: ${JSON.stringify(line)}`);
  }
  return faults;
}

/** Checks that each move to FAILED has one failure, which has a line if it is settled, and one line outside of trouble. */
function checkFailures({ transitions, failures, lines, troubles }: Observation): readonly string[] {
  const faults: string[] = [];
  const rows = Map.groupBy(failures, ({ transitionId }) => transitionId);
  const told = Map.groupBy(
    lines.filter(({ event }) => event === 'prompt.failed'),
    (line) => Number(line['transition_id']),
  );
  const moves = transitions.filter(({ kind, to }) => kind === 'prompt' && to === 'FAILED');
  const known = new Set(moves.map(({ transitionId }) => transitionId));
  for (const id of [...rows.keys(), ...told.keys()]) {
    if (!known.has(id)) faults.push(`no move to FAILED: ${id}`);
  }
  for (const { transitionId, project, id } of moves) {
    const [row, ...others] = rows.get(transitionId) ?? [];
    const own = told.get(transitionId) ?? [];
    const wrong = (what: string) =>
      faults.push(`${what} of ${transitionId}: ${JSON.stringify([row, own])}`);
    if (row === undefined || others.length > 0) wrong(`${others.length} further failures`);
    if (own.some((line) => line['project'] !== project || line['prompt_id'] !== id)) {
      wrong('a line that is another');
    }
    if (own.length > 1 && !own.some((line) => isInTrouble(troubles, line))) {
      wrong(`${own.length} lines`);
    }
    const { settlement } = row ?? {};
    const isTold = own.some((line) => {
      const info = line['error_info'] ?? undefined;
      return (
        isDeepStrictEqual(info, settlement?.errorInfo) && line['reason'] === settlement?.reason
      );
    });
    if (settlement === undefined ? own.length > 0 : !isTold) wrong('a settlement that is another');
  }
  return faults;
}

function isInTrouble(troubles: readonly TimeSpan[], { time }: { readonly time: string }): boolean {
  const at = Date.parse(time);
  return troubles.some(({ from, to }) => at >= from && at <= to);
}

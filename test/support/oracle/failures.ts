import { isDeepStrictEqual } from 'node:util';
import {
  type FailureRow,
  isInTrouble,
  type LogLine,
  type Observation,
  type Run,
  type TransitionRow,
} from './observation.ts';

const USELESS_PERIOD_MS = 5 * 60 * 1000;

interface Told {
  readonly run: Run;
  readonly line: LogLine;
}

/** Compares the moves of prompts to FAILED with the failures kept and the `prompt.failed` lines written. */
export function checkFailures(observation: Observation): readonly string[] {
  const { transitions, failures, runs } = observation;
  const moves = transitions.filter((row) => row.prompt_id !== undefined && row.to === 'FAILED');
  const rows = Map.groupBy(failures, (row) => row.transition_id);
  const lines = Map.groupBy(
    runs
      .flatMap((run) =>
        run.lines.filter(({ event }) => event === 'prompt.failed').map((line) => ({ run, line })),
      )
      .toSorted((one, other) => Date.parse(one.line.time) - Date.parse(other.line.time)),
    ({ line }) => line.transition_id,
  );
  const ids = new Set<number | undefined>(moves.map((move) => move.transition_id));
  return [
    ...[...rows.values(), ...lines.values()]
      .flat()
      .map((found) => ('line' in found ? found.line : found))
      .filter(({ transition_id }) => !ids.has(transition_id))
      .map((invented) => `no move to FAILED: ${JSON.stringify(invented)}`),
    ...moves.flatMap((move) => {
      const found = rows.get(move.transition_id) ?? [];
      const [row] = found;
      if (row === undefined || found.length > 1) {
        return [`${found.length} failures for ${JSON.stringify(move)}`];
      }
      return checkFailure(move, row, lines.get(move.transition_id) ?? [], observation);
    }),
  ];
}

function checkFailure(
  move: TransitionRow,
  row: FailureRow,
  told: readonly Told[],
  observation: Observation,
): readonly string[] {
  const wrong = (what: string, found: unknown) => `${what}: ${JSON.stringify(found)}`;
  const differences: string[] = [];
  if (!isAbout(row, move) || row.time !== move.time) differences.push(wrong('failure of', row));
  for (const { line } of told) {
    if (!isAbout(line, move)) differences.push(wrong('line of another failure', line));
    if (!isPlausible(line, move, observation)) differences.push(wrong('not what was served', line));
  }
  // A line is repeated, once per run, only after a kill between it and its settlement, after a SIGSTOP, or when workers lose
  // their database.
  const wasStopped = told.some(
    ({ run, line }) =>
      run.stopped === true ||
      (run.endedAt !== undefined && isInTrouble(observation, Date.parse(line.time))),
  );
  const repeatable = wasStopped ? [] : told.slice(0, -1).filter(({ run }) => !run.killed);
  const perRun = Map.groupBy(told, ({ run }) => run);
  if (repeatable.length > 0 || perRun.values().some((group) => group.length > 1)) {
    differences.push(wrong(`${told.length} lines of`, move));
  }
  const last = told.at(-1);
  if (row.settled && last === undefined) differences.push(wrong('no line of', row));
  const settling = wasStopped ? told : told.slice(-1);
  if (row.settled && settling.length > 0 && !settling.some(({ line }) => isSettledAs(row, line))) {
    differences.push(wrong('settled otherwise than told', [row, last?.line]));
  }
  if (!row.settled && last?.run.killed === false) differences.push(wrong('told, not settled', row));
  return differences;
}

function isAbout(found: { project?: string; prompt_id?: string }, move: TransitionRow): boolean {
  return found.project === move.project && found.prompt_id === move.prompt_id;
}

function isSettledAs(row: FailureRow, line: LogLine): boolean {
  return isDeepStrictEqual(row.error_info, line.error_info) && row.reason === (line.reason ?? null);
}

function isPlausible(line: LogLine, move: TransitionRow, { gave }: Observation): boolean {
  const id = move.prompt_id ?? '';
  const at = Date.parse(line.time);
  if (at < Date.parse(move.time)) return false;
  const neverSent = id === '.' || id === '..';
  if (line.error_info !== null) {
    return line.reason === undefined && !neverSent && gave(id, line.error_info, at);
  }
  if (neverSent) return line.reason === 'invalid_id';
  return line.reason !== undefined && at - Date.parse(move.time) >= USELESS_PERIOD_MS;
}

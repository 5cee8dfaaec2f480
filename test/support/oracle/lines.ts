import { isDeepStrictEqual } from 'node:util';
import { toldOfPollSince } from './history.ts';
import {
  type FailureRow,
  type LogLine,
  type Observation,
  type Run,
  type TransitionRow,
  isInTrouble,
  runsAt,
} from './observation.ts';

/** Compares the transitions with their lines, and checks errors, baselines and gone prompts. */
export function checkLines(observation: Observation): readonly string[] {
  const { transitions, runs } = observation;
  const rows = new Map(transitions.map((row) => [row.transition_id, row]));
  const told = new Set<number>();
  const differences: string[] = [];
  for (const run of runs) {
    const errors = run.lines.filter(({ level }) => level === 'error');
    const unexpected = errors.filter((line) => !isExpected(line, observation));
    differences.push(...unexpected.map((line) => `an error: ${JSON.stringify(line)}`));
  }
  for (const line of runs.flatMap((run) => run.lines)) {
    if (line.event !== 'prompt.transition' && line.event !== 'dataset.transition') continue;
    const id = line.transition_id ?? -1;
    const row = rows.get(id);
    if (told.has(id)) differences.push(`told twice: ${JSON.stringify(line)}`);
    if (row === undefined || !isLineOf(line, row)) {
      differences.push(`told, not recorded: ${JSON.stringify(line)}`);
    }
    told.add(id);
  }
  for (const row of transitions) {
    if (!told.has(row.transition_id) && !mayBeUntold(row, observation)) {
      differences.push(`no line of ${JSON.stringify(row)}`);
    }
  }
  return [...differences, ...checkBaselines(runs), ...checkGone(observation)];
}

function isLineOf(line: LogLine, row: TransitionRow): boolean {
  const fields = ['project', 'prompt_id', 'dataset_id', 'from', 'to'] as const;
  return fields.every((field) => line[field] === row[field]);
}

/** Maximum duration of a poll. */
const POLL_MS = 10_000;

/** Errors that the service and the configuration cause on purpose. */
const EXPECTED_ERRORS = new Set(['poll.failed', 'prompt.failed', 'config.reload_failed']);

function isExpected({ event, time }: LogLine, observation: Observation): boolean {
  const isOfStore = event === 'store.commit_failed' || event === 'worker.lease_lost';
  if (isOfStore) return isInTrouble(observation, Date.parse(time));
  return event !== undefined && EXPECTED_ERRORS.has(event);
}

/**
 * Whether a transition may lack its line: it was committed just before a kill, before the poll was logged. Or the commit
 * failed as far as the process could know, and the next process found it whole on the disk.
 */
function mayBeUntold({ project, time }: TransitionRow, observation: Observation): boolean {
  const at = Date.parse(time);
  const killed = runsAt(observation.runs, at).filter(
    ({ killed: isKilled, endedAt }) => isKilled && endedAt - at <= POLL_MS,
  );
  return killed.some((run) => isInTrouble(observation, at) || !toldOfPollSince(run, project, at));
}

function checkBaselines(runs: readonly Run[]): readonly string[] {
  const baselines = runs
    .flatMap((run) => run.lines)
    .filter(({ event }) => event === 'project.baseline');
  return Map.groupBy(baselines, ({ project, kind }) => `${kind}s of "${project}"`)
    .entries()
    .filter(([, lines]) => lines.length > 1)
    .map(([listing, lines]) => `${lines.length} baselines of ${listing}`)
    .toArray();
}

function checkGone({ projects, runs, samples }: Observation): readonly string[] {
  const lines = runs.flatMap((run) => run.lines).filter(({ event }) => event === 'prompt.gone');
  return projects.flatMap(({ id }) => {
    const told = lines.filter(({ project }) => project === id).length;
    const counted = samples.get(`evalwatch_prompts_gone_total{project="${id}"}`) ?? NaN;
    const isRight = runs.some(({ killed }) => killed) ? told <= counted : told === counted;
    return isRight ? [] : [`${told} lines of gone prompts of "${id}", counted: ${counted}`];
  });
}

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
  // A line is repeated, once per run, only after a kill between it and its settlement, or while the store could not be written.
  const wasInTrouble = told.some(({ line }) => isInTrouble(observation, Date.parse(line.time)));
  const repeatable = wasInTrouble ? [] : told.slice(0, -1).filter(({ run }) => !run.killed);
  const perRun = Map.groupBy(told, ({ run }) => run);
  if (repeatable.length > 0 || perRun.values().some((group) => group.length > 1)) {
    differences.push(wrong(`${told.length} lines of`, move));
  }
  const last = told.at(-1);
  if (row.settled && last === undefined) differences.push(wrong('no line of', row));
  const settling = wasInTrouble ? told : told.slice(-1);
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

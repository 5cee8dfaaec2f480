import {
  isInTrouble,
  type LogLine,
  type Observation,
  type Run,
  runsAt,
  type TransitionRow,
} from './observation.ts';
import { toldOfPollSince } from './polls.ts';

/** Compares the transitions with their lines, and checks errors, baselines and gone prompts. */
export function checkLines(observation: Observation): readonly string[] {
  const { transitions, runs } = observation;
  const rows = new Map(transitions.map((row) => [row.transition_id, row]));
  const told = new Set<number>();
  const differences: string[] = [];
  for (const run of runs) {
    const errors = run.lines.filter(({ level }) => level === 'error');
    const unexpected = errors.filter((line) => !isExpected(line, run, observation));
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

function isExpected({ event, time }: LogLine, run: Run, observation: Observation): boolean {
  const isOfStore = event === 'store.commit_failed' || event === 'worker.lease_lost';
  if (isOfStore) return run.stopped === true || isInTrouble(observation, Date.parse(time));
  return event !== undefined && EXPECTED_ERRORS.has(event);
}

/**
 * Whether a transition may lack its line: it was committed just before a kill, before the poll was logged. Or the commit
 * failed as far as the process could know, and the next process found it whole on the disk.
 */
function mayBeUntold({ project, time }: TransitionRow, observation: Observation): boolean {
  const at = Date.parse(time);
  const killed = runsAt(observation.runs, at).filter(
    ({ killed: isKilled, endedAt = at }) => isKilled && endedAt - at <= POLL_MS,
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

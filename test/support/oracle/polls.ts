import type { LogLine, Run } from './observation.ts';

/** What a run told of the polls of a project; epoch ms, in order. */
interface Polls {
  /** Ends of polls that took note of each listing that they were served. */
  readonly noted: readonly number[];
  /** Ends of polls that need not have, and requests that were given up: their answers may have come all the same. */
  readonly gaveUp: readonly number[];
}

const NO_POLLS: Polls = { noted: [], gaveUp: [] };
const pollsOfRuns = new WeakMap<Run, ReadonlyMap<string, Polls>>();

/** Whether this run told of a poll of the project that ended at this time or later. */
export function toldOfPollSince(run: Run, project: string, at: number): boolean {
  const { noted, gaveUp } = pollsOf(run, project);
  return Math.max(noted.at(-1) ?? 0, gaveUp.at(-1) ?? 0) >= at;
}

/**
 * Whether a listing that was produced at `at`, and the next one at `next`, was surely taken note of by one of these runs:
 * before that next one a poll ended that did, and since the one before it no request was given up.
 */
export function surelyNoted(
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

/** The run is over, or nothing is polled any more. */
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
 * A poll that failed may have read a listing whole before: it requests one again when it cannot tell what has changed. A
 * recovery tells of failed polls whose lines were left out.
 */
function hasGivenUp({ event, reason }: LogLine): boolean {
  return (
    event === 'poll.recovered' ||
    event === 'poll.failed' ||
    (event === 'api.retried' && isLoss(reason))
  );
}

/** What was served whole may have been lost on its way, or not been stored. */
function isLoss(reason: string | undefined): boolean {
  return reason === 'timeout' || reason === 'network' || reason === 'store';
}

import type { LogLine, Run } from './observation.ts';

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

import type { ProjectState, ShownProject } from '../content.ts';

/** Delay of a poll, ms, that a working scheduler never reaches. */
const LATE_MS = 60_000;

export function stateOf(
  { health, isHealthKnown, nextPollAt }: ShownProject,
  now: number,
): ProjectState {
  if (!isHealthKnown) return { kind: 'unknown' };
  if (health.lastPollAt !== undefined && !health.up) {
    return { kind: 'down', reason: health.reason, failure: health.failure };
  }
  if (nextPollAt !== undefined && nextPollAt < now - LATE_MS) {
    return { kind: 'late', dueAt: nextPollAt };
  }
  return { kind: health.up ? 'up' : 'new' };
}

/** Whether the statuses of the project are out of date, because it is not polled or its polls fail. */
export function isUnmonitored({ kind }: ProjectState): boolean {
  return kind === 'down' || kind === 'late';
}

import type { ProjectState, ShownProject } from '../content.ts';

/** A scheduler that is well is never this late. */
const LATE_MS = 60_000;

export function stateOf({ health, nextPollAt }: ShownProject, now: number): ProjectState {
  if (health.lastPollAt !== undefined && !health.up) {
    return { kind: 'down', reason: health.reason, keyWasRefused: health.keyWasRefused };
  }
  if (nextPollAt !== undefined && nextPollAt < now - LATE_MS) {
    return { kind: 'late', dueAt: nextPollAt };
  }
  return { kind: health.up ? 'up' : 'new' };
}

/** Nobody knows what its prompts do at the moment. */
export function isBlind({ kind }: ProjectState): boolean {
  return kind === 'down' || kind === 'late';
}

import type { StateExpectation } from '../../domain/expectation.ts';
import { isUnfinished, type PromptStatus, type UnfinishedStatus } from '../../domain/status.ts';

/** What is expected of the prompts of a project in each status in which they can be stuck. */
export type StateExpectations = Readonly<Record<UnfinishedStatus, StateExpectation>>;

/** Returns the expectations of a configured project; undefined until its durations were read for the first time. */
export type ExpectationsOf = (project: string) => StateExpectations | undefined;

/** Returns what is expected of a prompt in this status; undefined if nothing is, or while it is unknown. */
export function expectationIn(
  status: PromptStatus,
  expectations: StateExpectations | undefined,
): StateExpectation | undefined {
  return isUnfinished(status) ? expectations?.[status] : undefined;
}

import type { StateExpectation } from '../../domain/expectation.ts';
import type { UnfinishedStatus } from '../../domain/status.ts';

/** What is expected of the prompts of a project in each status in which they can be stuck. */
export type StateExpectations = Readonly<Record<UnfinishedStatus, StateExpectation>>;

/** Returns the expectations of a configured project; undefined until its durations were read for the first time. */
export type ExpectationsOf = (project: string) => StateExpectations | undefined;

import type { StateExpectations } from '../../src/domain/limits.ts';
import type { WatchedProject } from '../../src/monitor/ports/watched-project.ts';

/** Team and expectations of a project that configures neither. */
export const BY_DEFAULT: Pick<WatchedProject, 'team' | 'expect'> = {
  team: '',
  expect: { limits: { PENDING: 'auto', RUNNING: 'auto' }, maxFailureRatio: 0.2 },
};

/** Expectations of a project with too few known durations. */
export const UNLEARNED: StateExpectations = {
  PENDING: { limitMs: 3_600_000, source: 'default', typicalMs: undefined },
  RUNNING: { limitMs: 14_400_000, source: 'default', typicalMs: undefined },
};

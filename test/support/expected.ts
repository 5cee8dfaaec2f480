import type { StateExpectations } from '../../src/domain/limits.ts';
import type { EventOf } from '../../src/monitor/events.ts';
import type { ConfiguredProject } from '../../src/monitor/ports/watched-project.ts';

/** Team and expectations of a project that configures neither. */
export const BY_DEFAULT: Pick<ConfiguredProject, 'team' | 'expect'> = {
  team: '',
  expect: { limits: { PENDING: 'auto', RUNNING: 'auto' }, maxFailureRatio: 0.2 },
};

/** Returns the event of a configuration of these projects. */
export function configApplied(
  ids: readonly string[],
  watchesDatasets: (id: string) => boolean = () => false,
): EventOf<'config.applied'> {
  const projects = ids.map((id) => ({ ...BY_DEFAULT, id, datasets: watchesDatasets(id) }));
  return { type: 'config.applied', projects: new Map(projects.map((each) => [each.id, each])) };
}

/** Expectations of a project with too few known durations. */
export const UNLEARNED: StateExpectations = {
  PENDING: { limitMs: 3_600_000, source: 'default', typicalMs: undefined },
  RUNNING: { limitMs: 14_400_000, source: 'default', typicalMs: undefined },
};

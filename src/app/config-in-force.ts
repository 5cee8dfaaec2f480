import type { Config, ProjectConfig } from '../config/config.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { createLongestInterval } from '../schedule/longest-interval.ts';

/** The configuration that the parts of a process read at each use, so that a reload reaches them. */
export interface ConfigInForce {
  config(): Config;
  /** The configured projects by id, in the order of the configuration; none before the first `set`. */
  readonly projects: () => ReadonlyMap<string, ProjectConfig>;
  /** Returns the longest interval of a project's schedule, ms; 0 for a project that is not configured. */
  readonly maxIntervalMs: (project: string) => number;
  set(config: Config): void;
}

export function createConfigInForce(first: Config, clock: Pick<Clock, 'now'>): ConfigInForce {
  const longestInterval = createLongestInterval(clock);
  let config = first;
  let projects: ReadonlyMap<string, ProjectConfig> = new Map();
  return {
    config: () => config,
    projects: () => projects,
    maxIntervalMs: (id) => {
      const project = projects.get(id);
      return project === undefined ? 0 : longestInterval(project);
    },
    set: (next) => {
      config = next;
      projects = projectsOf(next);
    },
  };
}

/** The projects of a configuration by id. */
export function projectsOf({ projects }: Config): ReadonlyMap<string, ProjectConfig> {
  return new Map(projects.map((project) => [project.id, project]));
}

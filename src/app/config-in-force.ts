import type { Config, ProjectConfig } from '../config/config.ts';

/** The configuration that the parts of a process read at each use, so that a reload reaches them. */
export interface ConfigInForce {
  config(): Config;
  /** The configured projects by id, in the order of the configuration; none before the first `set`. */
  projects(): ReadonlyMap<string, ProjectConfig>;
  set(config: Config): void;
}

export function createConfigInForce(first: Config): ConfigInForce {
  let config = first;
  let projects: ReadonlyMap<string, ProjectConfig> = new Map();
  return {
    config: () => config,
    projects: () => projects,
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

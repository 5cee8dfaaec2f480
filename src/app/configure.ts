import { isDeepStrictEqual } from 'node:util';
import type { Config, ProjectConfig } from '../config/config.ts';
import type { HttpEvaluationService } from '../client/client.ts';
import type { EventLog } from '../log/lines.ts';
import type { Logger } from '../log/logger.ts';
import { NEVER_POLLED } from '../monitor/memory.ts';
import type { Poller } from '../monitor/poller.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollHealth, Store } from '../monitor/ports/store.ts';
import { parseSchedule } from '../schedule/cron.ts';
import type { WorkSharing } from './work-sharing.ts';

/** The configuration that the parts of a process read at each use, so that a reload reaches them. */
export interface ConfigInForce {
  config(): Config;
  /** The configured projects by id, in the order of the configuration; none before the first `set`. */
  readonly projects: () => ReadonlyMap<string, ProjectConfig>;
  /** Returns the longest interval of a project's schedule, ms; 0 for a project that is not configured. */
  readonly maxIntervalMs: (project: string) => number;
  set(config: Config): void;
}

export function createConfigInForce(first: Config, clock: Clock): ConfigInForce {
  let config = first;
  let projects: ReadonlyMap<string, ProjectConfig> = new Map();
  return {
    config: () => config,
    projects: () => projects,
    maxIntervalMs: (id) => {
      const project = projects.get(id);
      if (project === undefined) return 0;
      return parseSchedule(project.schedule, project.timezone).maxIntervalMs(clock.now());
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

export interface ConfigureOptions {
  readonly inForce: ConfigInForce;
  readonly store: Store;
  readonly sharing: WorkSharing | undefined;
  /** The client of the service that further calls use. */
  readonly inUse: { client: HttpEvaluationService };
  readonly createService: (settings: Config['service']) => HttpEvaluationService;
  readonly poller: Poller;
  readonly log: EventLog;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * Returns the function that applies a configuration, whole or not at all. If the store fails, it rejects with a StoreError,
 * and this process keeps the old configuration.
 */
export function createConfigure(options: ConfigureOptions): (next: Config) => Promise<void> {
  const { inForce, store, sharing, inUse, createService, poller, log, logger, clock } = options;

  async function loadHealth(ids: readonly string[]): Promise<readonly PollHealth[]> {
    if (ids.length === 0) return [];
    const stored = new Set(await store.projects());
    return await Promise.all(
      ids.map(async (id) => (stored.has(id) ? await store.loadHealth(id) : NEVER_POLLED)),
    );
  }

  return async (next) => {
    const before = inForce.projects();
    const hasNewService = !isDeepStrictEqual(next.service, inForce.config().service);
    const nextClient = hasNewService ? createService(next.service) : undefined;
    const ids = [...projectsOf(next).keys()];
    // With several workers, a worker receives the health of a project when it takes ownership.
    const added = sharing ? [] : ids.filter((id) => !before.has(id));
    // Every step that can fail precedes the one change.
    const health = await loadHealth(added);
    await store.configureProjects(ids, clock.now());
    for (const [index, id] of added.entries()) poller.watch(id, health[index]);
    inForce.set(next);
    for (const id of before.keys()) if (!inForce.projects().has(id)) poller.unwatch(id);
    sharing?.configure(next);
    // Running calls end with the client that they began with.
    inUse.client.renewConnections();
    if (nextClient !== undefined) {
      inUse.client = nextClient;
      poller.dropListings();
    }
    log.setProjects(ids);
    logger.setLevel(next.log.level);
  };
}

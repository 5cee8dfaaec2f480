import { isDeepStrictEqual } from 'node:util';
import type { Config, ProjectConfig } from './config/config.ts';
import { createReplaceableService } from './replaceable-service.ts';
import { createEvaluationService } from './evaluation-api/client.ts';
import type { Secrets } from './evaluation-api/secrets.ts';
import { createShutdown, type ShutdownControl } from './lifecycle.ts';
import type { Logger } from './log/logger.ts';
import { createLogObserver } from './log/observer.ts';
import { StoreError } from './monitor/errors.ts';
import { emitTo, type Observer } from './monitor/events.ts';
import { createFailureReporter, type FailureReporter } from './monitor/failure-reporter.ts';
import { createPoller, type Poller } from './monitor/poller.ts';
import type { Clock, PollHealth } from './monitor/ports.ts';
import { openStore, type SqliteStore } from './store/sqlite-store.ts';
import { version } from './version.ts';

/** What every command that polls is made of. */
export interface Engine {
  readonly store: SqliteStore;
  readonly poller: Poller;
  readonly reporter: FailureReporter;
  readonly shutdown: ShutdownControl;
  readonly emit: Observer;
  /** Tells this observer, too, of all that happens from now on. */
  observe(observer: Observer): void;
  /**
   * Takes over what of a configuration can change at run time; what has not changed goes on undisturbed.
   * @throws {StoreError} and then nothing has changed; {Error} likewise, if the file of authorities cannot be read
   */
  configure(config: Config): Promise<void>;
  /** The configured projects, in the order of the configuration. */
  projects(): readonly WatchedProject[];
  /** Undefined if it is not configured. */
  project(id: string): ProjectConfig | undefined;
  close(): Promise<void>;
}

export type WatchedProject = ProjectConfig & { readonly health: PollHealth };

export interface EngineOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

/**
 * Opens the store, holding it against others, and puts together what polls and reports.
 * @throws {StoreError} when the store cannot be opened or another process holds it
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { config, logger, secrets, clock } = options;
  const log = createLogObserver(logger, clock);
  const observers: Observer[] = [log.observe];
  const emit = emitTo(observers, (error) => {
    logger.error({ event: 'observer.failed', err: error }, 'An observer failed');
  });
  if (!('path' in config.store)) throw new StoreError('other', 'PostgreSQL cannot be opened yet');
  const store = await openStore({
    path: config.store.path,
    clock,
    emit,
    onCreated: (path) => logger.warn({ event: 'store.created', path }, 'New store created'),
  });
  const shutdown = createShutdown();
  let current = config;
  let projects: ReadonlyMap<string, ProjectConfig> = new Map();
  const createService = (settings: Config['service']) =>
    createEvaluationService({
      service: settings,
      keyOf: (project) => projects.get(project)?.key,
      secrets,
      clock,
      emit,
      version,
    });
  const service = createReplaceableService(createService(config.service));
  const missingAfter = () => current.missingAfter;
  const poller = createPoller({ service, store, clock, emit, missingAfter, shutdown });
  const reporter = createFailureReporter({
    service,
    store,
    clock,
    emit,
    parallelPerProject: () => Math.max(1, Math.floor(current.service.maxConcurrency / 2)),
    shutdown,
  });

  async function configure(next: Config): Promise<void> {
    const hasNewService = !isDeepStrictEqual(next.service, current.service);
    const nextService = hasNewService ? createService(next.service) : undefined;
    const configured = new Map(next.projects.map((project) => [project.id, project]));
    const added = [...configured.keys()].filter((id) => !projects.has(id));
    let health: readonly PollHealth[];
    try {
      await store.configureProjects([...configured.keys()], clock.now());
      health = await Promise.all(added.map((id) => store.loadHealth(id)));
    } catch (error) {
      await nextService?.close();
      throw error;
    }
    for (const [index, id] of added.entries()) poller.watch(id, health[index]);
    for (const id of projects.keys()) if (!configured.has(id)) poller.forget(id);
    projects = configured;
    current = next;
    if (nextService !== undefined) {
      service.replace(nextService);
      poller.forgetListings();
    }
    log.setProjects([...configured.keys()]);
    logger.setLevel(next.log.level);
  }

  return {
    store,
    poller,
    reporter,
    shutdown,
    emit,
    observe: (observer) => {
      observers.push(observer);
    },
    configure,
    projects: () =>
      projects
        .values()
        .map((project) => ({ ...project, health: poller.health(project.id) }))
        .toArray(),
    project: (id) => projects.get(id),
    close: async () => {
      shutdown.end();
      await service.close();
      await store.close();
    },
  };
}

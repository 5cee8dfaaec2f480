import { isDeepStrictEqual } from 'node:util';
import type { Config, ProjectConfig } from '../config/config.ts';
import { createReplaceableService } from '../evaluation-api/replaceable-service.ts';
import { createEvaluationService } from '../evaluation-api/client.ts';
import type { Secrets } from '../evaluation-api/secrets.ts';
import { createShutdown, endProcess, type ShutdownControl } from './lifecycle.ts';
import type { Logger } from '../log/logger.ts';
import { createLogObserver } from '../log/observer.ts';
import { emitTo, type FinishedPoll, type Observer } from '../monitor/events.ts';
import { createFailureReporter, type FailureReporter } from '../monitor/failure-reporter.ts';
import { NEVER_POLLED } from '../monitor/poll-health.ts';
import { createPoller, type Poller } from '../monitor/poller.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollHealth, Store } from '../monitor/ports/store.ts';
import type { PollRun } from '../monitor/reading.ts';
import { openStore, type OpenStore } from '../store/open.ts';
import { version } from './version.ts';
import type { WorkSharing } from './work-sharing.ts';

/** What every command that polls is made of. */
export interface Engine {
  readonly store: Store;
  readonly storeInfo: OpenStore['info'];
  /** Whether what is stored is where the configuration says. */
  isStoreInPlace(): boolean;
  /** How it stands to other processes; absent where there can be none. */
  readonly sharing: WorkSharing | undefined;
  readonly poller: Poller;
  /** Who owns a project, where there can be others; undefined if nobody does. @throws {StoreError} */
  ownerOf(project: string): Promise<string | undefined>;
  readonly reporter: FailureReporter;
  readonly shutdown: ShutdownControl;
  readonly emit: Observer;
  /** Tells this observer, too, of all that happens from now on. */
  observe(observer: Observer): void;
  /**
   * Takes over what of a configuration can change at run time; what has not changed goes on undisturbed.
   * @throws {StoreError} and then nothing has changed
   */
  configure(config: Config): Promise<void>;
  /** The configured projects, in the order of the configuration. */
  projects(): readonly WatchedProject[];
  /** Polls a configured project once, as the poller does; undefined, too, for one that is not configured. */
  poll(project: string, run: PollRun): Promise<FinishedPoll | undefined>;
  /** Whether this process polls the project, if it is configured. */
  mayPoll(project: string): boolean;
  /** How the polls of a configured project go; of one that others poll, as the store was last seen. */
  health(project: string): PollHealth;
  close(): Promise<void>;
}

export type WatchedProject = ProjectConfig & { readonly health: PollHealth };

export interface EngineOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly secrets: Secrets;
  readonly clock: Clock;
  /** Told whenever other projects may be polled than before. */
  readonly onOwnership?: () => void;
  /** Of several workers it takes all projects, not its fair share. */
  readonly takesAll?: boolean;
}

/**
 * Opens the store, holding it against others, and puts together what polls and reports.
 * @throws {StoreError} when the store cannot be opened or another process holds it
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { config, logger, secrets, clock } = options;
  const { onOwnership = () => {}, takesAll = false } = options;
  const log = createLogObserver(logger, clock);
  const observers: Observer[] = [log.observe];
  const emit = emitTo(observers, (error) => {
    logger.error({ event: 'observer.failed', err: error }, 'An observer failed');
  });
  const shutdown = createShutdown();
  const { store, info, isInPlace, shared } = await openStore({
    store: config.store,
    clock,
    emit,
    logger,
    signal: shutdown.requests,
  });
  let current = config;
  let projects: ReadonlyMap<string, ProjectConfig> = new Map();
  const sharing =
    shared &&
    (await import('./work-sharing.ts')).createWorkSharing({
      shared,
      clock,
      emit,
      poller: () => poller,
      isStopping: () => shutdown.waits.aborted,
      onChange: onOwnership,
      onError: endProcess,
      takesAll,
    });
  if (sharing !== undefined) observers.push(sharing.observe);
  const createService = (settings: Config['service']) =>
    createEvaluationService({
      service: settings,
      keyOf: (project) => projects.get(project)?.key,
      secrets,
      clock,
      emit,
      version,
      rateLimit: sharing?.rateLimit(settings.maxRequestsPerSecond),
    });
  const service = createReplaceableService(createService(config.service));
  const missingAfter = () => current.missingAfter;
  const poller = createPoller({ service, store, clock, emit, missingAfter, shutdown });
  const reporter = createFailureReporter({
    service,
    store: sharing?.store ?? store,
    clock,
    emit,
    parallelPerProject: () => Math.max(1, Math.floor(current.service.maxConcurrency / 2)),
    shutdown,
    ...(sharing && { lease: () => sharing.worker.lease() }),
  });

  async function configure(next: Config): Promise<void> {
    const hasNewService = !isDeepStrictEqual(next.service, current.service);
    const nextService = hasNewService ? createService(next.service) : undefined;
    const configured = new Map(next.projects.map((project) => [project.id, project]));
    // Where others poll too, a project comes with its health when this one takes it over.
    const added = sharing ? [] : [...configured.keys()].filter((id) => !projects.has(id));
    let health: readonly PollHealth[];
    try {
      // Every step that can fail precedes the one change.
      health = await healthOfEach(added);
      await store.configureProjects(await watchedWith([...configured.keys()]), clock.now());
    } catch (error) {
      await nextService?.close();
      throw error;
    }
    for (const [index, id] of added.entries()) poller.watch(id, health[index]);
    for (const id of projects.keys()) if (!configured.has(id)) poller.forget(id);
    projects = configured;
    current = next;
    sharing?.configure(next);
    if (nextService !== undefined) {
      service.replace(nextService);
      poller.forgetListings();
    }
    log.setProjects([...configured.keys()]);
    logger.setLevel(next.log.level);
  }

  async function healthOfEach(ids: readonly string[]): Promise<readonly PollHealth[]> {
    if (ids.length === 0) return [];
    const known = new Set(await store.projects());
    return await Promise.all(
      ids.map(async (id) => (known.has(id) ? await store.loadHealth(id) : NEVER_POLLED)),
    );
  }

  /** A command that polls beside others takes none of their projects away. */
  async function watchedWith(ids: readonly string[]): Promise<readonly string[]> {
    if (sharing === undefined || !takesAll) return ids;
    const { projects: watched } = await store.snapshot();
    return [...new Set([...watched.map(({ project }) => project), ...ids])];
  }

  function mayPoll(id: string): boolean {
    return sharing === undefined || sharing.worker.mayPoll(id);
  }

  function healthOf(id: string): PollHealth {
    return mayPoll(id) ? poller.health(id) : (sharing?.health(id) ?? NEVER_POLLED);
  }

  return {
    store: sharing?.store ?? store,
    storeInfo: info,
    isStoreInPlace: isInPlace,
    sharing,
    poller,
    ownerOf: async (id) => (await shared?.coordinator.owner(id))?.worker,
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
        .map((project) => ({ ...project, health: healthOf(project.id) }))
        .toArray(),
    poll: async (id, run) => {
      const project = projects.get(id);
      if (project === undefined || !mayPoll(id)) return undefined;
      return await (sharing ?? poller).poll(project, run);
    },
    mayPoll,
    health: healthOf,
    close: async () => {
      try {
        await service.close();
        await store.close();
      } finally {
        // The store's last words have a deadline, too.
        shutdown.end();
      }
    },
  };
}

import type { Config, ProjectConfig } from '../config/config.ts';
import type { OwnershipChange } from '../coordination/share.ts';
import { createEvaluationService, type EvaluationServiceOptions } from '../client/client.ts';
import { createApiKeyReader } from '../client/api-key.ts';
import { createConfigInForce, createConfigure } from './configure.ts';
import { createShutdown, endProcess, type ShutdownControl } from './lifecycle.ts';
import type { Logger } from '../log/logger.ts';
import { EventLog } from '../log/lines.ts';
import { emitTo, type FinishedPoll, type Observer } from '../monitor/events.ts';
import { LearnedExpectations } from '../monitor/expectations.ts';
import { FailureReporter } from '../monitor/failure-reporter.ts';
import { NEVER_POLLED } from '../monitor/memory.ts';
import { Poller } from '../monitor/poller.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { EvaluationService } from '../monitor/ports/service.ts';
import type { PollHealth, Store } from '../monitor/ports/store.ts';
import type { PollRun, WatchedProject } from '../monitor/ports/watched-project.ts';
import { openStore, type OpenStore } from '../store/open.ts';
import { version } from './version.ts';
import type { WorkSharing, WorkSharingOptions } from './work-sharing.ts';

/** The parts of a process that polls: daemon or the command `poll`. */
export interface Engine {
  readonly store: Store;
  readonly storeInfo: OpenStore['info'];
  /** Whether the store is where the configuration says. */
  isStoreInPlace(): boolean;
  /** Work sharing with other workers; undefined if the store allows only one process. */
  readonly sharing: WorkSharing | undefined;
  readonly poller: Poller;
  /**
   * Returns the name of the worker that owns the project; undefined if no worker owns it or the store allows only one process.
   * @throws {StoreError}
   */
  ownerOf(project: string): Promise<string | undefined>;
  readonly reporter: FailureReporter;
  readonly shutdown: ShutdownControl;
  readonly emit: Observer;
  /** Adds an observer of all events from now on. */
  observe(observer: Observer): void;
  /**
   * Calls the listener after the set of projects that this process may poll has changed, at most once per turn of the event
   * loop, with the projects that were taken or dropped; with undefined if any project may be affected.
   */
  onOwnershipChange(listener: (changed: readonly string[] | undefined) => void): void;
  /** The configuration in force. */
  config(): Config;
  /**
   * Applies the options that can change at run time. Projects and connections whose options are unchanged continue without
   * interruption.
   * @throws {StoreError} and this process then keeps the old configuration
   */
  configure(config: Config): Promise<void>;
  /** The configured projects, in the order of the configuration. */
  projects(): readonly (ProjectConfig & WatchedProject)[];
  /** Returns a configured project; undefined for another one. */
  configured(project: string): ProjectConfig | undefined;
  /** What is expected of the prompts of each project. Knows nothing before its first refresh. */
  readonly expectations: LearnedExpectations;
  /**
   * Polls a project once, like `Poller.poll`. Also resolves to undefined if the project is not configured or another worker
   * owns it.
   */
  poll(project: string, run: PollRun): Promise<FinishedPoll | undefined>;
  /** Whether this process may poll the project. Does not check that the project is configured. */
  mayPoll(project: string): boolean;
  /** Poll health of a configured project; as last known (`WorkSharing.health`) if this process does not own it. */
  health(project: string): PollHealth;
  /** False for a project of another worker before the store was read for a page or the API. */
  isHealthKnown(project: string): boolean;
  close(): Promise<void>;
}

export interface EngineOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  /** What a simulation puts in the place of store, network and chance. */
  readonly outside?: Outside;
}

export interface Outside {
  readonly openStore: typeof openStore;
  readonly service: Pick<EvaluationServiceOptions, 'dispatcher' | 'random'>;
}

/**
 * Opens the store (SQLite: locks it), and creates the poller and the failure reporter.
 * @throws {StoreError} when the store cannot be opened or another process holds it
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { config, logger, clock, outside } = options;
  const log = new EventLog(logger, clock);
  const observers: Observer[] = [log.observe];
  const emit = emitTo(observers, (error) => {
    logger.error({ event: 'observer.failed', err: error }, 'An observer failed');
  });
  const shutdown = createShutdown(clock);
  const opened = await (outside?.openStore ?? openStore)({
    store: config.store,
    clock,
    emit,
    logger,
    signal: shutdown.requests,
  });
  const sharing = await shareWork(opened, { clock, emit, stopping: shutdown.waits });
  if (sharing !== undefined) observers.push(sharing.observe);
  const store = sharing?.store ?? opened.store;

  const inForce = createConfigInForce(config, clock);
  const readKey = createApiKeyReader(clock);
  const createService = (settings: Config['service']) =>
    createEvaluationService({
      service: settings,
      keyOf: (project) => inForce.projects().get(project)?.key,
      readKey,
      clock,
      emit,
      version,
      rateLimit: sharing?.rateLimit(settings.maxRequestsPerSecond),
      ...outside?.service,
    });
  const inUse = { client: createService(config.service) };
  const service = serviceOf(inUse);
  const { maxIntervalMs, projects } = inForce;
  const poller = new Poller({
    service,
    store,
    clock,
    emit,
    missingAfter: () => inForce.config().missingAfter,
    maxIntervalMs,
    shutdown,
  });
  if (sharing !== undefined) watchOwned(sharing, poller);
  const reporter = new FailureReporter({
    service,
    store,
    clock,
    emit,
    parallelPerProject: () => Math.max(1, Math.floor(inForce.config().service.maxConcurrency / 2)),
    shutdown,
    ...(sharing && { lease: () => sharing.worker.lease() }),
  });

  const expectations = new LearnedExpectations({ store, clock, projects, maxIntervalMs });
  observers.push(expectations.observe, wakeReporter(reporter, sharing));

  const mayPoll = (id: string) => sharing === undefined || sharing.worker.mayPoll(id);
  const knownHealth = (id: string) =>
    sharing === undefined || sharing.worker.owns(id) ? poller.health(id) : sharing.health(id);
  const health = (id: string) => knownHealth(id) ?? NEVER_POLLED;

  return {
    store,
    storeInfo: opened.info,
    isStoreInPlace: opened.isInPlace,
    sharing,
    poller,
    ownerOf: async (id) => (await opened.shared?.coordinator.owner(id))?.worker,
    reporter,
    shutdown,
    emit,
    observe: (observer) => {
      observers.push(observer);
    },
    onOwnershipChange: (listener) => sharing?.onOwnershipChange(gatherChanges(listener)),
    config: () => inForce.config(),
    configure: createConfigure({
      inForce,
      store,
      sharing,
      inUse,
      createService,
      poller,
      log,
      logger,
      clock,
    }),
    configured: (id) => inForce.projects().get(id),
    expectations,
    projects: () =>
      Array.from(inForce.projects().values(), (project) => ({
        ...project,
        health: health(project.id),
      })),
    poll: async (id, run) => {
      if (!inForce.projects().has(id) || !mayPoll(id)) return undefined;
      // A reload may have changed or removed the project since an earlier attempt.
      const poll = async () => {
        const project = inForce.projects().get(id);
        return project && (await poller.poll(project, run));
      };
      return await (sharing ? sharing.poll(id, run, poll) : poll());
    },
    mayPoll,
    health,
    isHealthKnown: (id) => knownHealth(id) !== undefined,
    close: async () => {
      try {
        await inUse.client.close();
        await store.close();
      } finally {
        // Closing the store may take until the deadline of the shutdown.
        shutdown.end();
      }
    },
  };
}

/** Returns a service that passes each call to the client that is in use when the call begins. */
function serviceOf(inUse: { readonly client: EvaluationService }): EvaluationService {
  return {
    list: (...call) => inUse.client.list(...call),
    getErrorInfo: (...call) => inUse.client.getErrorInfo(...call),
    storing: (recordBytes) => inUse.client.storing(recordBytes),
  };
}

/** Creates the work sharing of a PostgreSQL store. A process with SQLite never loads this code. */
async function shareWork(
  { shared }: OpenStore,
  options: Omit<WorkSharingOptions, 'shared' | 'onError'>,
): Promise<WorkSharing | undefined> {
  if (shared === undefined) return undefined;
  const { createWorkSharing } = await import('./work-sharing.ts');
  return createWorkSharing({ ...options, shared, onError: endProcess });
}

/** Wakes the reporter when it may have something to report. Returns an observer. */
function wakeReporter(reporter: FailureReporter, sharing: WorkSharing | undefined): Observer {
  // The worker that had the projects may have left failures.
  sharing?.onOwnershipChange(gatherChanges(() => reporter.wake()));
  return (event) => {
    if (event.type !== 'record.transition') return;
    const { kind, to } = event.transition;
    if (kind === 'prompt' && to === 'FAILED') reporter.wake();
  };
}

/** Has the poller watch the projects that this process owns. */
function watchOwned(sharing: WorkSharing, poller: Poller): void {
  sharing.onOwnershipChange(({ taken, dropped }) => {
    for (const project of dropped) {
      sharing.keepHealth(project, poller.health(project));
      poller.unwatch(project);
    }
    for (const { project, health } of taken) poller.watch(project, health);
  });
}

/**
 * Returns a function that gathers changes of ownership, and in the next turn of the event loop calls `listener` once with the
 * projects that were taken or dropped; with undefined if a change names none, because then any project may be affected.
 */
export function gatherChanges(
  listener: (changed: readonly string[] | undefined) => void,
): (change: OwnershipChange) => void {
  /** The names in each change since the last call. */
  let changes: (readonly string[])[] = [];

  function deliver(): void {
    const names = changes.some((named) => named.length === 0) ? undefined : changes.flat();
    changes = [];
    listener(names && [...new Set(names)]);
  }

  return ({ taken, dropped }) => {
    if (changes.length === 0) setImmediate(deliver);
    changes.push([...taken.map(({ project }) => project), ...dropped]);
  };
}

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Config, ProjectConfig } from '../config/config.ts';
import { type EvaluationServiceOptions, HttpEvaluationService } from '../client/client.ts';
import { createApiKeyReader } from '../client/api-key.ts';
import type { Worker } from '../coordination/worker.ts';
import { ProcessShutdown, endProcess, version } from './process.ts';
import type { Logger } from '../log/logger.ts';
import { EventLog } from '../log/lines.ts';
import { emitTo, type FinishedPoll, type Observer } from '../monitor/events.ts';
import { LearnedExpectations } from '../monitor/expectations.ts';
import { FailureReporter } from '../monitor/failure-reporter.ts';
import { NEVER_POLLED } from '../monitor/memory.ts';
import { Poller } from '../monitor/poller.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { EvaluationService } from '../monitor/ports/service.ts';
import type { PollHealth, Store, StoreSnapshot } from '../monitor/ports/store.ts';
import type { PollRun } from '../monitor/ports/watched-project.ts';
import { maxIntervalOf, parseSchedule } from '../schedule/cron.ts';
import { lastEnd, type Pause, pauseAt } from '../schedule/pause.ts';
import { openStore, type OpenStore } from '../store/open.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/**
 * For how long after maintenance its failures would raise an alert: the rules look back 15 minutes and two scrapes, and add 2
 * minutes themselves. Were it longer, failures after the maintenance would never raise one.
 */
const LOOK_BACK_MS = 14 * MINUTE_MS;

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

/** What is there before the parts of an engine. */
interface Ground {
  readonly observers: Observer[];
  readonly emit: Observer;
  readonly shutdown: ProcessShutdown;
  readonly opened: OpenStore;
  readonly worker: Worker | undefined;
}

/**
 * Opens the store (SQLite: locks it), and creates the poller and the failure reporter.
 * @throws {StoreError} when the store cannot be opened or another process holds it
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { config, logger, clock, outside } = options;
  const observers: Observer[] = [new EventLog(logger, clock).observe];
  const emit = emitTo(observers, (error) => {
    logger.error({ event: 'observer.failed', err: error }, 'An observer failed');
  });
  const shutdown = new ProcessShutdown(clock);
  const opened = await (outside?.openStore ?? openStore)({
    store: config.store,
    clock,
    emit,
    logger,
    signal: shutdown.requests,
  });
  const { shared } = opened;
  let worker: Worker | undefined;
  if (shared !== undefined) {
    // A process with SQLite never loads this code.
    const { Worker } = await import('../coordination/worker.ts');
    const { name, leaseMs, coordinator, store } = shared;
    worker = new Worker({
      id: name,
      version,
      leaseMs,
      coordinator,
      ownership: store.ownership,
      restoreProjects: (projects) => store.restoreProjects(projects, clock.now()),
      clock,
      emit,
      stopping: shutdown.waits,
      onError: endProcess,
    });
    observers.push(worker.observe);
  }
  return new Engine(options, { observers, emit, shutdown, opened, worker });
}

/** The parts of a process that polls, daemon or the command `poll`, and the configuration that they read at each use. */
export class Engine {
  /** Engine, version and place of the store. */
  readonly opened: OpenStore;
  readonly store: Store;
  /** Shares the projects with other workers; undefined if the store allows only one process. */
  readonly worker: Worker | undefined;
  readonly reporter: FailureReporter;
  /** What is expected of the prompts of each project. Knows nothing before its first refresh. */
  readonly expectations: LearnedExpectations;
  readonly shutdown: ProcessShutdown;
  readonly emit: Observer;
  readonly #options: EngineOptions;
  readonly #observers: Observer[];
  readonly #poller: Poller;
  readonly #readKey: ReturnType<typeof createApiKeyReader>;
  /** The client that further calls use; running ones end with the client that they began with. */
  #client: HttpEvaluationService;
  #config: Config;
  #projects: ReadonlyMap<string, ProjectConfig> = new Map();
  /** Health of projects of other workers: from the last snapshot, or from the time when this worker dropped the project. */
  readonly #healthElsewhere = new Map<string, PollHealth>();

  constructor(options: EngineOptions, ground: Ground) {
    const { clock } = options;
    const { emit, shutdown, worker } = ground;
    const { store } = ground.opened;
    this.opened = ground.opened;
    this.store = store;
    this.worker = worker;
    this.shutdown = shutdown;
    this.emit = emit;
    this.#options = options;
    this.#observers = ground.observers;
    this.#config = options.config;
    this.#readKey = createApiKeyReader(clock);
    this.#client = this.#createClient(options.config.service);
    const service: EvaluationService = {
      list: (...call) => this.#client.list(...call),
      getErrorInfo: (...call) => this.#client.getErrorInfo(...call),
      storing: (recordBytes) => this.#client.storing(recordBytes),
    };
    const projects = () => this.#projects;
    this.#poller = new Poller({
      service,
      store,
      clock,
      emit,
      missingAfter: () => this.#config.missingAfter,
      maxIntervalMs: (id) => this.maxIntervalMs(id),
      shutdown,
    });
    const reporter = new FailureReporter({
      service,
      store,
      clock,
      emit,
      parallelPerProject: () => Math.max(1, Math.floor(this.#config.service.maxConcurrency / 2)),
      shutdown,
      ...(worker && { lease: () => worker.lease() }),
    });
    this.reporter = reporter;
    if (worker !== undefined) worker.isReporting = (project) => reporter.isReporting(project);
    this.expectations = new LearnedExpectations({
      store,
      clock,
      projects,
      maxIntervalMs: (id) => maxIntervalOf(this.#projects.get(id), clock.now()),
    });
    this.observe((event) => {
      if (event.type !== 'record.transition') return;
      const { kind, to } = event.transition;
      if (kind === 'prompt' && to === 'FAILED') reporter.wake();
    });
    worker?.onChange(({ taken, dropped }) => {
      for (const project of dropped) {
        this.#healthElsewhere.set(project, this.#poller.health(project));
        this.#poller.unwatch(project);
      }
      for (const { project, figures } of taken) {
        this.#poller.watch(project, figures.snapshot.health);
      }
      // The worker that had the projects may have left failures.
      reporter.wake();
    });
  }

  /** The configuration in force. */
  get config(): Config {
    return this.#config;
  }

  /** The configured projects by id, in the order of the configuration; none before the first `configure`. */
  get projects(): ReadonlyMap<string, ProjectConfig> {
    return this.#projects;
  }

  /** Adds an observer of all events from now on. */
  observe(observer: Observer): void {
    this.#observers.push(observer);
  }

  /**
   * Applies the options that can change at run time, whole or not at all. Projects and connections whose options are unchanged
   * continue without interruption.
   * @throws {StoreError} and this process then keeps the old configuration
   */
  async configure(next: Config): Promise<void> {
    const { logger, clock } = this.#options;
    const before = this.#projects;
    const projects = projectsOf(next);
    const ids = [...projects.keys()];
    const hasNewService = !isDeepStrictEqual(next.service, this.#config.service);
    const nextClient = hasNewService ? this.#createClient(next.service) : undefined;
    // With several workers, a worker receives the health of a project when it takes ownership.
    const added = this.worker ? [] : ids.filter((id) => !before.has(id));
    // Every step that can fail precedes the one change.
    const health = await this.#loadHealth(added);
    await this.store.configureProjects(ids, clock.now());
    for (const [index, id] of added.entries()) this.#poller.watch(id, health[index]);
    this.#config = next;
    this.#projects = projects;
    if (this.worker !== undefined) this.worker.configure(ids, digestOf(next));
    else for (const id of before.keys()) if (!projects.has(id)) this.#poller.unwatch(id);
    this.#client.renewConnections();
    if (nextClient !== undefined) {
      this.#client = nextClient;
      this.#poller.dropListings();
    }
    logger.setLevel(next.log.level);
    this.emit({ type: 'config.applied', projects });
  }

  /**
   * Polls a project once, like `Poller.poll`. Also resolves to undefined if the project is not configured or another worker
   * owns it.
   */
  async poll(id: string, run: PollRun): Promise<FinishedPoll | undefined> {
    if (!this.#projects.has(id) || !this.mayPoll(id)) return undefined;
    // A reload may have changed or removed the project since an earlier attempt.
    const poll = async () => {
      const project = this.#projects.get(id);
      return project && (await this.#poller.poll(project, run));
    };
    return await (this.worker ? this.worker.poll(id, poll) : poll());
  }

  /** Whether this process may poll the project. Does not check that the project is configured. */
  mayPoll(id: string): boolean {
    return this.worker === undefined || this.worker.mayPoll(id);
  }

  /** Poll health of a configured project, as last known; undefined for one of another worker before a `snapshot`. */
  health(id: string): PollHealth | undefined {
    const isOurs = this.worker === undefined || this.worker.owns(id);
    return isOurs ? this.#poller.health(id) : this.#healthElsewhere.get(id);
  }

  /**
   * Returns the schedule in force of a project: that for idle projects only while its polls succeed and no prompt of it is
   * unfinished. Of a project of another worker only the health is known.
   */
  scheduleOf({ id, schedule, idleSchedule = schedule }: ProjectConfig): string {
    const isUp = this.health(id)?.up === true;
    return isUp && (!this.mayPoll(id) || this.store.isIdle(id)) ? idleSchedule : schedule;
  }

  /** Returns the pause of a project that lasts; undefined if there is none. */
  pauseOf({ pauses }: ProjectConfig): Pause | undefined {
    return pauseAt(pauses, this.#options.clock.now());
  }

  /**
   * Whether no alert and no message is about a project: while it is paused; after maintenance without polls until the next one,
   * which is given one interval and a minute; and after other maintenance for the time that alerts look back.
   */
  isQuiet(id: string): boolean {
    const project = this.#projects.get(id);
    if (project === undefined) return false;
    if (this.pauseOf(project) !== undefined) return true;
    const now = this.#options.clock.now();
    const { pauses } = project;
    // That of most projects, each of which is asked for in every scrape.
    if (pauses.maintenance.length === 0) return false;
    if (lastEnd(pauses, 'continue', now - LOOK_BACK_MS, now) !== undefined) return true;
    const end = lastEnd(pauses, 'stop', now - this.maxIntervalMs(id) - MINUTE_MS, now);
    return end !== undefined && (this.health(id)?.lastPollAt ?? 0) < end;
  }

  /** Returns until when nothing that moved is told of a project, epoch ms: the end of the last maintenance of a day with polls. */
  untoldUntil(id: string): number | undefined {
    const now = this.#options.clock.now();
    const project = this.#projects.get(id);
    return project && lastEnd(project.pauses, 'continue', now - DAY_MS, now);
  }

  /** Returns the longest interval of the schedule in force of a project, ms; 0 for a project that is not configured. */
  maxIntervalMs(id: string): number {
    const project = this.#projects.get(id);
    if (project === undefined) return 0;
    const schedule = parseSchedule(this.scheduleOf(project), project.timezone);
    return schedule.maxIntervalMs(this.#options.clock.now());
  }

  /** Reads the store for pages and the API, and takes the health of projects of other workers from it. @throws {StoreError} */
  async snapshot(project?: string): Promise<StoreSnapshot> {
    const snapshot = await this.store.snapshot(project);
    if (this.worker === undefined) return snapshot;
    if (project === undefined) this.#healthElsewhere.clear();
    for (const { project: id, health } of snapshot.projects) this.#healthElsewhere.set(id, health);
    return snapshot;
  }

  async close(): Promise<void> {
    try {
      await this.#client.close();
      await this.store.close();
    } finally {
      // Closing the store may take until the deadline of the shutdown.
      this.shutdown.end();
    }
  }

  #createClient(service: Config['service']): HttpEvaluationService {
    return new HttpEvaluationService({
      service,
      keyOf: (project) => this.#projects.get(project)?.key,
      readKey: this.#readKey,
      clock: this.#options.clock,
      emit: this.emit,
      version,
      rateLimit: this.worker?.rateLimit(service.maxRequestsPerSecond),
      ...this.#options.outside?.service,
    });
  }

  async #loadHealth(ids: readonly string[]): Promise<readonly PollHealth[]> {
    if (ids.length === 0) return [];
    const stored = new Set(await this.store.projects());
    return await Promise.all(
      ids.map(async (id) => (stored.has(id) ? await this.store.loadHealth(id) : NEVER_POLLED)),
    );
  }
}

/** Digest of the options that must be equal on all workers, without any secret. */
function digestOf({ service, missingAfter, jitterMs, projects, notify }: Config): string {
  const watched = projects.map(({ id, schedule, idleSchedule, timezone, datasets, pauses }) => {
    return [id, schedule, idleSchedule, timezone, datasets, pauses];
  });
  const told = notify.map(({ name, type, on, teams, projects: named }) => {
    return [name, type, ...[on, teams, named].map((names) => Array.from(names ?? []).toSorted())];
  });
  const text = JSON.stringify([service.baseUrl, missingAfter, jitterMs, watched, ...told]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The projects of a configuration by id. */
export function projectsOf({ projects }: Config): ReadonlyMap<string, ProjectConfig> {
  return new Map(projects.map((project) => [project.id, project]));
}

import { StoreError } from '../monitor/errors.ts';
import type { MonitorEvent, Observer } from '../monitor/events.ts';
import type { ExpectationsOf } from '../domain/limits.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { ExperimentRow, PollHealth, Store, StoreSnapshot } from '../monitor/ports/store.ts';
import type { ConfiguredProject, ProjectSchedule } from '../monitor/ports/watched-project.ts';
import { renderFamilies, renderLabel, toSeconds, type Family } from './exposition.ts';
import { ProcessMetrics, type ProcessInfo } from './process-metrics.ts';
import { PROJECT_FAMILIES, ProjectCounts, type ScrapedProject } from './project-metrics.ts';

/** How long a scrape waits for the store. Prometheus gives up after 10 s. */
const READ_TIMEOUT_MS = 2000;
/** Slow reads in a row from which on each counts as a failure: after one, the store may be busy with a large commit. */
const MAX_SLOW_READS = 3;

export interface MetricsOptions extends ProcessInfo {
  readonly clock: Clock;
  readonly store: Pick<Store, 'size'> & { snapshot(): Promise<ScrapedStore> };
  /** Reads the experiments that these projects show. It is absent, or answers undefined, if they show none. */
  readonly experiments?: (
    projects: readonly string[],
  ) => Promise<readonly ExperimentRow[]> | undefined;
  /** Returns the current health of a project, also while the store cannot be written. */
  readonly healthOf: (project: string) => PollHealth;
  /** Returns the schedule of a project; undefined while it has none. */
  readonly schedule: (project: string) => ProjectSchedule | undefined;
  /** Whether no alert is to be about a project. */
  readonly isQuiet: (project: string) => boolean;
  readonly expectationsOf: ExpectationsOf;
  /** Returns the address at which users reach the web server (`web.external_url`). */
  readonly externalUrl: () => string | undefined;
  /** Whether the files of the web configuration are valid; absent without one. */
  readonly isWebConfigValid?: (() => boolean) | undefined;
  /** Returns the configured receivers, and since when something waits for each, epoch ms. */
  readonly receivers: () => readonly {
    readonly name: string;
    readonly oldestDueAt: number | undefined;
  }[];
  /** One of several workers; absent if the store allows only one process. */
  readonly worker?: {
    /** Whether it owns the project and its lease holds. */
    owns(project: string): boolean;
    /** Epoch ms; undefined before the first lease. */
    leaseExpiresAt(): number | undefined;
  };
  /** Receives `store.commit_failed` when scrapes cannot read the store (docs/specification.md#scrapes). */
  readonly emit: Observer;
}

type StoreSize = Awaited<ReturnType<Store['size']>>;

/** What a scrape reads from the store. */
interface ScrapedStore extends StoreSnapshot {
  /** Number of projects that all workers watch; absent if the store allows only one process. */
  readonly configured?: number;
}

/** What a scrape shows that is neither counted by this process nor of a project. */
interface ScrapedDaemon {
  readonly labels: '';
  /** Absent if the store could not be read; so is `size`. */
  readonly backlog: StoreSnapshot['backlog'] | undefined;
  readonly size: StoreSize | undefined;
  readonly externalUrl: string | undefined;
  readonly configured: number;
  readonly worker:
    { readonly projects: number; readonly leaseExpiresAt?: number | undefined } | undefined;
}

const DAEMON_FAMILIES: readonly Family<ScrapedDaemon>[] = [
  {
    name: 'evalwatch_error_info_backlog',
    type: 'gauge',
    help: 'Failures of prompts whose error_info is not logged yet.',
    samples: ({ backlog }, add) => add(backlog?.count),
  },
  {
    name: 'evalwatch_error_info_backlog_oldest_timestamp_seconds',
    type: 'gauge',
    help: 'When the oldest failure whose error_info is not logged yet was found, Unix time in seconds.',
    samples: ({ backlog }, add) => add(toSeconds(backlog?.oldestAt)),
  },
  {
    name: 'evalwatch_store_database_bytes',
    type: 'gauge',
    help: 'Size of the database file, or of all tables of a PostgreSQL store, in bytes.',
    samples: ({ size }, add) => add(size?.database),
  },
  {
    name: 'evalwatch_store_wal_bytes',
    type: 'gauge',
    help: 'Size of the write-ahead log in bytes.',
    samples: ({ size }, add) => add(size?.wal),
  },
  {
    name: 'evalwatch_web_info',
    type: 'gauge',
    help: 'Always 1; the label shows the address at which users reach the web server.',
    samples: ({ externalUrl }, add) => {
      if (externalUrl !== undefined) add(1, renderLabel('external_url', externalUrl));
    },
  },
  {
    name: 'evalwatch_projects_configured',
    type: 'gauge',
    help: 'Projects in the configuration that was applied last, by any worker.',
    samples: ({ configured }, add) => add(configured),
  },
  {
    name: 'evalwatch_worker_projects',
    type: 'gauge',
    help: 'Projects that this worker owns, which are those whose series it exports.',
    samples: ({ worker }, add) => add(worker?.projects),
  },
  {
    name: 'evalwatch_worker_lease_expiry_timestamp_seconds',
    type: 'gauge',
    help: 'When the lease of this worker runs out unless it is renewed, Unix time in seconds.',
    samples: ({ worker }, add) => add(toSeconds(worker?.leaseExpiresAt)),
  },
];

interface ScrapedReceiver {
  readonly labels: string;
  readonly sent: number;
  readonly givenUp: number;
  readonly oldestDueAt: number | undefined;
}

const RECEIVER_FAMILIES: readonly Family<ScrapedReceiver>[] = [
  {
    name: 'evalwatch_notifications_total',
    type: 'counter',
    help: 'Messages that a receiver took (sent), or did not take within 24 hours (given_up).',
    samples: ({ sent, givenUp }, add) => {
      add(sent, renderLabel('outcome', 'sent'));
      add(givenUp, renderLabel('outcome', 'given_up'));
    },
  },
  {
    name: 'evalwatch_notification_oldest_due_timestamp_seconds',
    type: 'gauge',
    help: 'Since when a receiver should have been told something that it was not told yet, Unix time in seconds.',
    samples: ({ oldestDueAt }, add) => add(toSeconds(oldestDueAt)),
  },
];

/**
 * All metrics of docs/metrics.md as text format 0.0.4. Each is declared in one file, with what counts it: those of a project
 * in project-metrics.ts, those that this process counts in process-metrics.ts, what else a scrape reads in this one.
 */
export class Metrics {
  readonly #options: MetricsOptions;
  readonly #process: ProcessMetrics;
  #configured: ReadonlyMap<string, ConfiguredProject> = new Map();
  /** The projects that have series: all configured ones, or those of them that this worker owns. */
  #projects = new Map<string, ProjectCounts>();
  /** Messages by receiver. */
  readonly #notified = new Map<string, { sent: number; givenUp: number }>();
  /** Number of projects that all workers watch, as last read. */
  #configuredInStore: number | undefined;
  readonly #readSnapshot: () => Promise<ScrapedStore | undefined>;
  readonly #readSize: () => Promise<StoreSize | undefined>;
  readonly #readExperiments: () => Promise<readonly ExperimentRow[] | undefined>;

  constructor(options: MetricsOptions) {
    const { store, clock, worker } = options;
    this.#options = options;
    this.#process = new ProcessMetrics(options, worker !== undefined, clock.now());
    const { emit } = options;
    this.#readSnapshot = readInTime(() => store.snapshot(), emit);
    this.#readSize = readInTime(() => store.size(), emit);
    const experiments = async () => await options.experiments?.([...this.#projects.keys()]);
    this.#readExperiments = readInTime(experiments, emit);
  }

  /** Counts an event. Events of projects without series change no series of a project. */
  readonly observe = (event: MonitorEvent): void => {
    this.#process.observe(event, this.#options.clock.now());
    if (event.type === 'config.applied') this.#configure(event.projects);
    else if (event.type === 'notification.sent') this.#of(event.receiver).sent += 1;
    else if (event.type === 'notification.given_up') this.#of(event.receiver).givenUp += 1;
    if ('project' in event) this.#projects.get(event.project)?.observe(event);
  };

  /** Projects that have series keep their counts; a new one starts at 0. */
  #configure(projects: ReadonlyMap<string, ConfiguredProject>): void {
    const before = this.#projects;
    this.#configured = projects;
    this.#projects = new Map();
    for (const id of projects.keys()) {
      if (this.#isOwned(id)) this.#projects.set(id, before.get(id) ?? new ProjectCounts(id));
    }
  }

  /**
   * Starts the series of projects that this worker takes at 0, and ends those of projects that it no longer owns
   * (docs/specification.md#metrics-of-several-workers).
   */
  changeOwnership({
    taken,
    dropped,
  }: {
    readonly taken: readonly { readonly project: string }[];
    readonly dropped: readonly string[];
  }): void {
    for (const project of dropped) this.#projects.delete(project);
    for (const { project } of taken) {
      if (this.#configured.has(project)) this.#projects.set(project, new ProjectCounts(project));
    }
  }

  /**
   * Renders the exposition in pieces of UTF-8, with pauses for other work. If the store fails or is slow, only the series that
   * need no store are rendered.
   */
  async render(): Promise<readonly Buffer[]> {
    const { worker, externalUrl, isWebConfigValid } = this.#options;
    const [snapshot, size, experiments = []] = await Promise.all([
      this.#readSnapshot(),
      this.#readSize(),
      this.#readExperiments(),
    ]);
    const ofProcess = await this.#process.render(isWebConfigValid?.() ?? true);
    this.#configuredInStore = snapshot?.configured ?? this.#configuredInStore;
    const shown = this.#shown(snapshot);
    const daemon: ScrapedDaemon = {
      labels: '',
      backlog: snapshot?.backlog,
      size,
      externalUrl: externalUrl(),
      configured: this.#configuredInStore ?? this.#configured.size,
      worker: worker && { projects: shown.length, leaseExpiresAt: worker.leaseExpiresAt() },
    };
    return [
      ...(await renderFamilies(PROJECT_FAMILIES, this.#read(shown, snapshot, experiments))),
      ...(await renderFamilies(RECEIVER_FAMILIES, this.#receivers())),
      ...(await renderFamilies(DAEMON_FAMILIES, [daemon])),
      Buffer.from(ofProcess),
    ];
  }

  /**
   * Returns the projects of a scrape. With several workers, the store, if it could be read, must also say that this one owns a
   * project: the two can differ for a while.
   */
  #shown(snapshot: StoreSnapshot | undefined): readonly ProjectCounts[] {
    const owned = [...this.#projects.values()].filter(({ id }) => this.#isOwned(id));
    if (this.#options.worker === undefined || snapshot === undefined) return owned;
    const stored = new Set(snapshot.projects.map(({ project }) => project));
    return owned.filter(({ id }) => stored.has(id));
  }

  #receivers(): readonly ScrapedReceiver[] {
    return this.#options.receivers().map(({ name, oldestDueAt }) => {
      return { labels: renderLabel('receiver', name), ...this.#of(name), oldestDueAt };
    });
  }

  #of(receiver: string): { sent: number; givenUp: number } {
    const counts = this.#notified.get(receiver) ?? { sent: 0, givenUp: 0 };
    this.#notified.set(receiver, counts);
    return counts;
  }

  #isOwned(project: string): boolean {
    return this.#options.worker?.owns(project) ?? true;
  }

  /** Reads each project when it is rendered. */
  *#read(
    projects: readonly ProjectCounts[],
    snapshot: StoreSnapshot | undefined,
    experiments: readonly ExperimentRow[],
  ): Generator<ScrapedProject> {
    const { healthOf, schedule, isQuiet, expectationsOf } = this.#options;
    const stored = new Map(snapshot?.projects.map((project) => [project.project, project]));
    const experimentsOf = Map.groupBy(experiments, ({ project }) => project);
    for (const counts of projects) {
      const { id, labels } = counts;
      const project = this.#configured.get(id);
      // A reload meanwhile has removed it.
      if (project === undefined) continue;
      yield {
        labels,
        project,
        health: healthOf(id),
        counts,
        schedule: schedule(id),
        isQuiet: isQuiet(id),
        expectations: expectationsOf(id),
        stored: stored.get(id),
        experiments: experimentsOf.get(id) ?? [],
      };
    }
  }
}

/**
 * Returns a function that reads the store for a scrape. It resolves to undefined if the store fails or is too slow. A new read
 * begins only after the last one has ended, so that reads of a silent store do not take all connections.
 */
function readInTime<Value>(
  read: () => Promise<Value>,
  emit: Observer,
): () => Promise<Value | undefined> {
  let underWay: Promise<Value | undefined> | undefined;
  let slowReads = 0;

  function fail(error: unknown): undefined {
    if (!(error instanceof StoreError)) throw error;
    emit({ type: 'store.commit_failed', reason: error.reason, error });
  }

  return async () => {
    underWay ??= read()
      .catch(fail)
      .finally(() => {
        underWay = undefined;
      });
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => late.resolve(undefined), READ_TIMEOUT_MS);
    const answer = await Promise.race([
      underWay.then((value) => ({ value })),
      late.promise,
    ]).finally(() => clearTimeout(timer));
    if (answer !== undefined) {
      slowReads = 0;
      return answer.value;
    }
    slowReads += 1;
    if (slowReads >= MAX_SLOW_READS) {
      const text = `the store has answered none of ${slowReads} scrapes in a row within ${READ_TIMEOUT_MS / 1000} s`;
      fail(new StoreError('io', text));
    }
    return undefined;
  };
}

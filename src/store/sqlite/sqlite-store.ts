import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type {
  Committed,
  KnownProject,
  PendingFailure,
  PendingFailureQuery,
  PollCommit,
  PollHealth,
  ProjectFigures,
  PruneLimits,
  Store,
  StoreSnapshot,
} from '../../monitor/ports/store.ts';
import { Figures } from '../figures.ts';
import { postponeFailure, readPendingFailures, settleFailure } from '../failures.ts';
import { HealthQueue } from '../health-queue.ts';
import { Notifications } from '../notifications.ts';
import { outcomeOf } from '../outcome.ts';
import { CONFIGURE, readFigures, readHealth } from '../projects.ts';
import { prune } from '../pruning.ts';
import { toHealthColumns } from '../rows.ts';
import { type Change, createDb, type Db, type Write } from '../sql.ts';
import { startThread, type StoreThread } from './client.ts';
import type { Call, Reads, Upgrade } from './database.ts';
import { withStoreErrors } from './errors.ts';
import { fileSize, inspectStoreFile, prepareRealPath } from './file.ts';
import { SqliteReads } from './sql/reads.ts';
import { loadKnown, toSummaries } from './sql/known.ts';
import { PART_ROWS } from './sql/poll-rows.ts';
import { WriteQueue } from './write-queue.ts';

export interface StoreOptions {
  /** Absolute path; missing directories are created. */
  readonly path: string;
  readonly clock: Clock;
  /** Receives `store.committed` and `store.commit_failed`. */
  readonly emit: Observer;
  /** Called with the real path when there was no store before. */
  readonly onCreated?: (path: string) => void;
  /** Called before a store of an earlier schema version is upgraded. */
  readonly onUpgrade?: (upgrade: Upgrade) => void;
  /** Starts the thread in which SQLite works. */
  readonly startThread?: typeof startThread;
}

/** Number of projects whose figures are read at once: the main thread does that in a few milliseconds. */
const PAGE_PROJECTS = 250;
/** Writes the health of polls that changed nothing. Skips a project that was deleted. */
const WRITE_HEALTH: Change = {
  name: 'write_health',
  last: `UPDATE project AS p SET up = h.value ->> 'up', consecutive_failures = h.value ->> 'consecutive_failures',
      reason = h.value ->> 'reason', last_poll_at = h.value ->> 'last_poll_at',
      last_success_at = h.value ->> 'last_success_at', steady_since = h.value ->> 'steady_since'
    FROM json_each(:rows) h WHERE p.id = h.value ->> 'id'`,
};

/** Interval at which the files are compared with those that were opened, ms. Each commit compares them as well. */
const CHECK_EVERY_MS = 1000;

/**
 * Opens the store for its one daemon, and creates it if there is none (docs/specification.md#one-daemon). SQLite works in
 * another thread: a call blocks the event loop only while up to a thousand rows are copied.
 * @throws {StoreError} `busy` if another process has it locked; also if the file is not a store of this or an older version,
 * which then does not change
 */
export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  return await withStoreErrors(options.path, async () => {
    const file = await prepareRealPath(options.path);
    const found = await inspectStoreFile(file);
    const paths = { path: options.path, file };
    const { startThread: start = startThread, onUpgrade = () => {} } = options;
    const thread = await start(paths, onUpgrade);
    if (found === 'absent') options.onCreated?.(file);
    const store = new SqliteStore(file, thread, options);
    await store.readFigures(await store.projects());
    return store;
  });
}

/** The store of one daemon. */
export class SqliteStore extends SqliteReads implements Store {
  /** Version of SQLite, such as `3.54.0`. */
  readonly sqliteVersion: string;
  readonly notifications: Notifications;
  readonly #file: string;
  readonly #thread: StoreThread;
  readonly #emit: Observer;
  readonly #queue: WriteQueue;
  readonly #health: HealthQueue<PollHealth>;
  readonly #figures = new Figures();
  /** Emits a failure as that of a commit: reports of failures wait for these reads. */
  readonly #reported: Db;
  readonly #files: ReturnType<typeof watchFiles>;
  #closing: Promise<void> | undefined;

  constructor(file: string, thread: StoreThread, { clock, emit }: StoreOptions) {
    super(
      createDb(async (_, text, parameters) => {
        this.#assertOpen();
        return await thread.read({ method: 'select', args: [text, parameters] });
      }),
    );
    this.sqliteVersion = thread.sqliteVersion;
    this.#file = file;
    this.#thread = thread;
    this.#emit = emit;
    this.#queue = new WriteQueue(thread, clock, emit);
    this.#health = new HealthQueue((waiting) => this.#writeHealth(waiting), clock);
    this.#reported = createDb((_, ...args) => this.#readOrEmit({ method: 'select', args }));
    this.notifications = new Notifications(this.db, this.#write, (project) =>
      this.#figures.snapshot(project),
    );
    this.#files = watchFiles(clock, () => this.#readOrEmit({ method: 'assertInPlace', args: [] }));
  }

  /**
   * Reads the figures of those of these projects, the configured ones, that are not known yet. In pages, so that the main thread
   * reads few at once; each is put in place in the turn of its answer, before those of later writes.
   */
  async readFigures(ids: readonly string[]): Promise<void> {
    this.#figures.keep(ids);
    const missing = ids.filter((id) => !this.#figures.has(id));
    for (let start = 0; start < missing.length; start += PAGE_PROJECTS) {
      const page = missing.slice(start, start + PAGE_PROJECTS);
      for (const figures of await readFigures(this.db, page)) {
        this.#figures.set(figures.snapshot.project, figures);
      }
    }
    this.#figures.sort();
  }

  /** Whether the store's files were those that were opened, as of the last comparison, at most about a second ago. */
  isInPlace(): boolean {
    return this.#files.isInPlace();
  }

  override async snapshot(project?: string): Promise<StoreSnapshot> {
    const backlog = await this.readBacklog();
    return { projects: this.#figures.snapshots(project), backlog };
  }

  async configureProjects(ids: readonly string[], at: number): Promise<void> {
    await this.#write(CONFIGURE, { ids: JSON.stringify(ids), at });
    await this.readFigures(ids);
  }

  async loadHealth(project: string): Promise<PollHealth> {
    this.#assertOpen();
    await this.#health.flush();
    return await readHealth(this.#reported, project);
  }

  loadKnown(...asked: Parameters<Store['loadKnown']>): Promise<KnownProject> {
    return loadKnown((...args) => this.#readOrEmit({ method: 'known', args }), ...asked);
  }

  /** A poll of a project that is not configured is rare, and committed at once even if it changed nothing. */
  async commitPoll(poll: PollCommit): Promise<Committed | undefined> {
    this.#assertOpen();
    const { project, health } = poll;
    if (poll.listings.size > 0 || !this.#figures.has(project)) return await this.#commit(poll);
    await this.#health.add(project, health);
    this.#figures.change(project, health);
    return { transitions: [], finishes: [] };
  }

  isFinishing(project: string): boolean {
    return this.#figures.summaries(project)?.prompt.finishing ?? false;
  }

  isIdle(project: string): boolean {
    return this.#figures.isIdle(project);
  }

  keepHealth(project: string, health: PollHealth): void {
    if (!this.#figures.has(project)) return;
    this.#health.keep(project, health);
    this.#figures.change(project, health);
  }

  pendingFailures(query: PendingFailureQuery): Promise<readonly PendingFailure[]> {
    return readPendingFailures(this.#reported, query);
  }

  async settleFailure(...asked: Parameters<Store['settleFailure']>): Promise<void> {
    const settled = await settleFailure(this.#write, ...asked);
    if (settled === undefined) return;
    const { project, ...total } = settled;
    this.#figures.changeError(project, total.label, total);
  }

  async postponeFailure(...asked: Parameters<Store['postponeFailure']>): Promise<void> {
    await postponeFailure(this.#write, ...asked);
  }

  async prune(limits: PruneLimits): Promise<void> {
    const isClosing = () => this.#closing !== undefined;
    await prune(this.#write, limits, isClosing, (project, label) => {
      this.#figures.changeError(project, label, undefined);
    });
  }

  async size(): Promise<{ readonly database: number; readonly wal: number }> {
    return await withStoreErrors(this.#file, async () => {
      const [database, wal] = await Promise.all([
        fileSize(this.#file),
        fileSize(`${this.#file}-wal`),
      ]);
      return { database, wal };
    });
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new StoreError('other', 'the store is closed');
  }

  /** Ends after the calls so far. What takes several of them is refused at the next one. */
  async #close(): Promise<void> {
    this.#files.stop();
    await this.#health.close();
    await this.#queue.close();
    await this.#thread.close();
  }

  async #commit(poll: PollCommit): Promise<Committed | undefined> {
    const { project, health } = poll;
    const before = this.#figures.summaries(project) ?? (await this.#readSummaries(project));
    const outcome = await outcomeOf(this.#reported, poll, before);
    await this.#health.drop(project);
    const committed = await this.#queue.commit(poll, outcome);
    if (committed !== undefined) this.#figures.change(project, health, outcome.summaries);
    return committed;
  }

  async #readSummaries(project: string): Promise<ProjectFigures['summaries']> {
    const { prompts, datasets } = await this.#readOrEmit({ method: 'known', args: [project, []] });
    return toSummaries(prompts, datasets);
  }

  async #writeHealth(waiting: ReadonlyMap<string, PollHealth>): Promise<void> {
    const rows = Array.from(waiting, ([id, each]) => ({ id, ...toHealthColumns(each) }));
    while (rows.length > 0) {
      await this.#queue.change(WRITE_HEALTH, { rows: JSON.stringify(rows.splice(0, PART_ROWS)) });
    }
  }

  readonly #write: Write = async <Row>(...asked: Parameters<Write>) => {
    this.#assertOpen();
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the text says what its rows are
    return (await this.#queue.change(...asked)) as readonly Row[];
  };

  /** Emits a failure as that of a commit: polls and reports of failures wait for these reads. */
  async #readOrEmit<Asked extends Call<Reads>>(
    call: Asked,
  ): Promise<ReturnType<Reads[Asked['method']]>> {
    this.#assertOpen();
    try {
      return await this.#thread.read(call);
    } catch (error) {
      if (error instanceof StoreError) {
        this.#emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  }
}

/** Runs `check` at an interval, and keeps whether it last succeeded. */
function watchFiles(
  clock: Pick<Clock, 'every'>,
  check: () => Promise<void>,
): {
  readonly isInPlace: () => boolean;
  readonly stop: () => void;
} {
  let isInPlace = true;
  let isChecking = false;

  async function checkFiles(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
      await check();
      isInPlace = true;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      isInPlace = false;
    } finally {
      isChecking = false;
    }
  }

  const timer = clock.every(CHECK_EVERY_MS, () => void checkFiles()).unref();
  return { isInPlace: () => isInPlace, stop: () => timer.cancel() };
}

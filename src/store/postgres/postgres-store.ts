import { limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import type { Coordinator, Ownership } from '../../coordination/ports.ts';
import type { Kind } from '../../domain/status.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type {
  Committed,
  KnownProject,
  OwnedSnapshot,
  PendingFailure,
  PendingFailureQuery,
  PollCommit,
  PollHealth,
  PruneLimits,
  Store,
  StoreSnapshot,
} from '../../monitor/ports/store.ts';
import { postponeFailure, readPendingFailures, settleFailure } from '../failures.ts';
import { Notifications } from '../notifications.ts';
import { CONFIGURE, readHealth } from '../projects.ts';
import { prune } from '../pruning.ts';
import { unknownProject } from '../rows.ts';
import type { Db, Write } from '../sql.ts';
import { PostgresReader } from './postgres-reader.ts';
import { createCoordinator } from './ownership/coordinator.ts';
import {
  type Database,
  type DatabaseOptions,
  PostgresDatabase,
  type Statement,
} from './database.ts';
import { migrate } from './sql/migrate.ts';
import { OwnedProjects } from './ownership/owned-projects.ts';
import { knownQuery, type KnownRow, type OnlyThese, toListings } from './sql/known.ts';
import { createPostgresDb, createPostgresWrite, toStatement } from './sql/texts.ts';
import { readUrl } from './url.ts';

export interface PostgresOptions {
  /** Such as `postgres://user:password@one,two:5433/database?sslmode=verify-full`; a secret. */
  readonly url: string;
  /** Name of this worker, as in `WorkerIdentity`. */
  readonly worker: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  /** Receives `store.committed`, `store.commit_failed` and `store.commit_refused`. */
  readonly emit: Observer;
  /** Aborts when a shutdown has waited long enough for the database. */
  readonly signal: AbortSignal;
  /** Opens the connections; a simulation has its own. */
  readonly open?: (options: DatabaseOptions) => Database;
}

export interface Postgres {
  readonly store: PostgresStore;
  readonly coordinator: Coordinator;
}

/** Selects the size of all tables with their indexes, and whether the server has analysed the largest one. */
const SIZE: Statement = {
  text: `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes,
      bool_or(relname = 'record' AND reltuples >= 0) AS is_counted,
      split_part(current_setting('server_version'), ' ', 1) AS server_version
    FROM pg_class WHERE relnamespace = 'evalwatch'::regnamespace AND relkind = 'r'`,
};

interface SizeRow {
  readonly bytes: number;
  readonly is_counted: boolean;
  readonly server_version: string;
}

/** Connections for commits and reads. The coordinator has another one, so that no beat waits for them. */
const CONNECTIONS = 4;
const TIMEOUT_MS = 30_000;
/** Time limit of the coordinator's statements, ms; a third of a lease, if that is less. */
const MAX_LEASE_TIMEOUT_MS = 5000;

/**
 * Opens the store, and creates its tables if the database has none. Closing the store closes the coordinator.
 * @throws {StoreError} when no server answers in time, or the schema is foreign or too new
 */
export async function openPostgres(options: PostgresOptions): Promise<Postgres> {
  const { clock, leaseMs, url, signal, open = (of) => new PostgresDatabase(of) } = options;
  const settings = await readUrl(url);
  await using opened = new AsyncDisposableStack();
  const database = open({
    settings,
    connections: CONNECTIONS,
    timeoutMs: TIMEOUT_MS,
    clock,
    signal,
  });
  opened.defer(() => database.close());
  await migrate(database);
  // Concurrent queries open all connections.
  const sizes = Array.from({ length: CONNECTIONS }, () => database.query<SizeRow>(SIZE));
  const [[first] = []] = await Promise.all(sizes);
  // The worker waits no longer, and the next beat needs another connection if this one is dead.
  const timeoutMs = Math.min(MAX_LEASE_TIMEOUT_MS, Math.ceil(leaseMs / 3));
  const shared = open({ settings, connections: 1, timeoutMs, clock, signal });
  opened.defer(() => shared.close());
  const coordinator = createCoordinator(shared, leaseMs);
  const held = opened.move();
  const store = new PostgresStore(database, options, first, () => held.disposeAsync());
  return { store, coordinator };
}

/** A store that several workers write. It refuses commits of projects that its worker does not own. */
export class PostgresStore extends PostgresReader implements Store {
  /** Version of the server, such as `15.18`. */
  readonly serverVersion: string;
  readonly notifications: Notifications;
  readonly #database: Database;
  readonly #options: PostgresOptions;
  readonly #owned: OwnedProjects;
  /** Emits a failure as that of a commit. */
  readonly #reported: Db;
  readonly #change: Write;
  readonly #onClosed: () => Promise<void>;
  /** Serial queue of the operations that create and delete projects. */
  readonly #inProjectQueue = limitConcurrency(1);
  /** Serial queue of settlements, which count error_ids up to a limit. */
  readonly #inSettlementQueue = limitConcurrency(1);
  /** Number of calls of `configureProjects` that have not ended. */
  #configuring = 0;
  #size = 0;
  #closing: Promise<void> | undefined;

  constructor(
    database: Database,
    options: PostgresOptions,
    first: SizeRow | undefined,
    onClosed: () => Promise<void>,
  ) {
    const { worker, clock, emit, signal } = options;
    super(database, clock);
    this.serverVersion = first?.server_version ?? '';
    this.#database = database;
    this.#options = options;
    this.#onClosed = onClosed;
    const write: Database['query'] = (...asked) => this.#write(...asked);
    this.#reported = createPostgresDb((...asked) => this.#read(...asked));
    this.#change = createPostgresWrite(write);
    const reads = this.#reported;
    this.#owned = new OwnedProjects({ worker, database, reads, write, clock, emit, signal });
    this.notifications = new Notifications(this.db, this.#change, (project) =>
      this.#owned.figures.snapshot(project),
    );
    this.#measured(first);
  }

  get ownership(): Ownership {
    return this.#owned;
  }

  override async snapshot(project?: string): Promise<StoreSnapshot> {
    await this.#owned.flush();
    return await super.snapshot(project);
  }

  /** Returns the configured projects that this worker owns, of which it reads none. @throws {StoreError} */
  async ownedSnapshot(): Promise<OwnedSnapshot> {
    return await this.#owned.snapshot();
  }

  async configureProjects(ids: readonly string[], at: number): Promise<void> {
    this.#configuring += 1;
    try {
      await this.#configure(ids, at);
    } finally {
      this.#configuring -= 1;
    }
  }

  /** Does what `configureProjects` does, unless that is under way. Returns whether it did. @throws {StoreError} */
  async restoreProjects(ids: readonly string[], at: number): Promise<boolean> {
    if (this.#configuring > 0) return false;
    await this.#configure(ids, at);
    return true;
  }

  async loadHealth(project: string): Promise<PollHealth> {
    this.#assertOpen();
    await this.#owned.flush();
    return await readHealth(this.#reported, project);
  }

  async loadKnown(
    project: string,
    kinds: readonly Kind[],
    only: OnlyThese = new Map(),
  ): Promise<KnownProject> {
    this.#assertOpen();
    const { statement, values } = knownQuery(project, kinds, only);
    const [row] = await this.#read<KnownRow>(statement, values);
    if (row === undefined) throw unknownProject(project);
    return { token: row.token, listings: toListings(row, kinds) };
  }

  async commitPoll(poll: PollCommit): Promise<Committed | undefined> {
    this.#assertOpen();
    return await this.#owned.commitPoll(poll);
  }

  isFinishing(project: string): boolean {
    return this.#owned.figures.summaries(project)?.prompt.finishing ?? false;
  }

  isIdle(project: string): boolean {
    return this.#owned.figures.isIdle(project);
  }

  keepHealth(project: string, health: PollHealth): void {
    this.#owned.keepHealth(project, health);
  }

  async pendingFailures(query: PendingFailureQuery): Promise<readonly PendingFailure[]> {
    this.#assertOpen();
    const { worker } = this.#options;
    return await readPendingFailures(this.#reported, query, { worker, tokens: this.#owned.tokens });
  }

  async settleFailure(...asked: Parameters<Store['settleFailure']>): Promise<void> {
    this.#assertOpen();
    const settled = await this.#inSettlementQueue(() => settleFailure(this.#change, ...asked));
    if (settled === undefined) return;
    const { project, ...total } = settled;
    this.#owned.figures.changeError(project, total.label, total);
  }

  async postponeFailure(...asked: Parameters<Store['postponeFailure']>): Promise<void> {
    this.#assertOpen();
    await postponeFailure(this.#change, ...asked);
  }

  async prune(limits: PruneLimits): Promise<void> {
    this.#assertOpen();
    const isClosing = () => this.#closing !== undefined;
    const deleteRows: Write = (...asked) =>
      this.#inProjectQueue(async () => (isClosing() ? [] : await this.#change(...asked)));
    await prune(deleteRows, limits, isClosing, (project, label) => {
      this.#owned.figures.changeError(project, label, undefined);
    });
  }

  async size(): Promise<{ readonly database: number; readonly wal: undefined }> {
    if (this.#closing === undefined) {
      const [measured] = await this.#database.query<SizeRow>(SIZE);
      this.#measured(measured);
    }
    return { database: this.#size, wal: undefined };
  }

  override async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new StoreError('other', 'the store is closed');
  }

  /** Ends after the statements so far. What takes several of them is refused at the next one. */
  async #close(): Promise<void> {
    await this.#owned.close();
    await this.#onClosed();
  }

  #measured(row: SizeRow | undefined): void {
    this.#size = row?.bytes ?? this.#size;
    if (row?.is_counted === true) this.#database.keepPlans();
  }

  /**
   * It is made at most once, or not at all: if its answer is lost, the error says that it may have been made. Workers whose
   * configuration the database then contradicts repair that (docs/specification.md#lost-configurations).
   */
  async #configure(ids: readonly string[], at: number): Promise<void> {
    this.#assertOpen();
    const { clock, emit } = this.#options;
    await this.#inProjectQueue(async () => {
      const started = clock.monotonic();
      const { statement, values } = toStatement(CONFIGURE, { ids: JSON.stringify(ids), at });
      const { error, unknown } = await this.#database.attempt(statement, values);
      if (error === undefined) {
        return emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      }
      emit({ type: 'store.commit_failed', reason: error.reason, error });
      if (!unknown) throw error;
      throw new StoreError(
        error.reason,
        `${error.message}; the watched projects may have changed already: repeat this once the database accepts it`,
      );
    });
  }

  /** Emits a failure as that of a commit. @throws {StoreError} */
  async #read<Row>(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return await this.#database.query<Row>(statement, values);
    } catch (error) {
      if (error instanceof StoreError) {
        this.#options.emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  }

  /** Emits the commit, or its failure. @throws {StoreError} */
  async #write<Row>(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]> {
    const { clock, emit } = this.#options;
    const started = clock.monotonic();
    const written = await this.#read<Row>(statement, values);
    emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
    return written;
  }
}

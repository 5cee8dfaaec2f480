import { limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import type { Coordinator, Ownership } from '../../coordination/ports.ts';
import { StoreError } from '../../monitor/errors.ts';
import type { Observer } from '../../monitor/events.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import type { OwnedSnapshot, Store } from '../../monitor/ports/store.ts';
import { createOpenWork } from '../open-work.ts';
import {
  type HealthColumns,
  type PendingColumns,
  toHealth,
  toPendingFailure,
  unknownProject,
} from '../rows.ts';
import { PostgresReader } from './postgres-reader.ts';
import { configure } from './configure.ts';
import { createCoordinator } from './ownership/coordinator.ts';
import {
  type Database,
  type DatabaseOptions,
  PostgresDatabase,
  type Statement,
} from './database.ts';
import {
  type CountedError,
  PENDING,
  pendingParameters,
  POSTPONE,
  postponeParameters,
  SETTLE,
  settleParameters,
} from './sql/failures.ts';
import { migrate } from './sql/migrate.ts';
import { OwnedProjects } from './ownership/owned-projects.ts';
import { HEALTH } from './sql/projects.ts';
import { type ForgottenError, PRUNING } from './sql/pruning.ts';
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

/** A store that several workers write. It refuses commits of projects that its worker does not own. */
export interface PostgresStore extends Store {
  readonly ownership: Ownership;
  /** Version of the server, such as `15.18`. */
  readonly serverVersion: string;
  /** Returns the configured projects that this worker owns, of which it reads none. @throws {StoreError} */
  ownedSnapshot(): Promise<OwnedSnapshot>;
  /** Does what `configureProjects` does, unless that is under way. Returns whether it did. @throws {StoreError} */
  restoreProjects(ids: readonly string[], at: number): Promise<boolean>;
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
  const store = createStore(database, options, first, () => held.disposeAsync());
  return { store, coordinator };
}

function createStore(
  database: Database,
  { clock, emit, worker, signal }: PostgresOptions,
  first: SizeRow | undefined,
  onClosed: () => Promise<void>,
): PostgresStore {
  let size = 0;
  let closing: Promise<void> | undefined;
  const openWork = createOpenWork();
  const { guarded } = openWork;
  const { read, write } = createReportedQueries(database, clock, emit);

  /** Serial queue of the operations that create and delete projects. */
  const inProjectQueue = limitConcurrency(1);
  /** Serial queue of settlements, which count error_ids up to a limit. */
  const inSettlementQueue = limitConcurrency(1);
  /** Number of calls of `configureProjects` that have not ended. */
  let configuring = 0;

  async function measure(): Promise<void> {
    const [measured] = await database.query<SizeRow>(SIZE);
    note(measured);
  }

  function note(measured: SizeRow | undefined): void {
    size = measured?.bytes ?? size;
    if (measured?.is_counted === true) database.keepPlans();
  }

  async function close(): Promise<void> {
    openWork.refuse();
    await openWork.close();
    await ownedProjects.close();
    await onClosed();
  }

  const deleteRows: Database['query'] = (...asked) => inProjectQueue(() => write(...asked));
  const reader = new PostgresReader(database, clock);
  const ownedProjects = new OwnedProjects({ database, read, write, clock, emit, signal });
  note(first);

  return {
    serverVersion: first?.server_version ?? '',
    ownership: ownedProjects,
    projects: guarded(() => reader.projects()),
    snapshot: guarded(async (project) => {
      await ownedProjects.flush();
      return await reader.snapshot(project);
    }),
    ownedSnapshot: guarded(() => ownedProjects.snapshot()),
    statuses: guarded((query) => reader.statuses(query)),
    transitions: guarded((query) => reader.transitions(query)),
    failures: guarded((query) => reader.failures(query)),
    events: guarded((after, limit) => reader.events(after, limit)),
    moves: guarded((query) => reader.moves(query)),
    failureCounts: guarded((query) => reader.failureCounts(query)),
    durations: guarded((states, firstDay) => reader.durations(states, firstDay)),
    causes: guarded((query) => reader.causes(query)),
    configureProjects: guarded(async (ids, at) => {
      configuring += 1;
      try {
        await inProjectQueue(() => configure(database, clock, emit, ids, at));
      } finally {
        configuring -= 1;
      }
    }),
    restoreProjects: guarded(async (ids, at) => {
      if (configuring > 0) return false;
      await inProjectQueue(() => configure(database, clock, emit, ids, at));
      return true;
    }),
    loadHealth: guarded(async (project) => {
      await ownedProjects.flush();
      const [row] = await read<HealthColumns>(HEALTH, [project]);
      if (row === undefined) throw unknownProject(project);
      return toHealth(row);
    }),
    loadKnown: guarded((...asked) => ownedProjects.loadKnown(...asked)),
    commitPoll: guarded((poll) => ownedProjects.commitPoll(poll)),
    keepHealth: (project, health) => ownedProjects.keepHealth(project, health),
    pendingFailures: guarded(async (query) => {
      const rows = await read<PendingColumns & { readonly project_token: string }>(
        PENDING,
        pendingParameters(query, worker),
      );
      // Not those of a project that is being given back.
      return rows
        .filter(({ project, project_token }) => ownedProjects.tokens.get(project) === project_token)
        .map(toPendingFailure);
    }),
    settleFailure: guarded(async (failure, settled, at) => {
      const values = settleParameters(failure, settled, at, worker);
      const [counted] = await inSettlementQueue(() => write<CountedError>(SETTLE, values));
      if (counted === undefined) return;
      const { project, ...total } = counted;
      ownedProjects.figures.changeErrors(project, new Map([[total.label, total]]));
    }),
    postponeFailure: guarded(async (failure, tries) => {
      await write(POSTPONE, postponeParameters(failure, tries));
    }),
    prune: guarded(async (limits) => {
      const steps = PRUNING.map(({ valuesOf, ...statement }) => {
        return () => deleteRows<Partial<ForgottenError>>(statement, valuesOf(limits, worker));
      });
      await prune(steps, openWork.isRefused, ({ project, label }) =>
        ownedProjects.figures.changeErrors(project ?? '', new Map([[label ?? '', undefined]])),
      );
    }),
    size: async () => {
      if (!openWork.isRefused()) await openWork.run(measure);
      return { database: size, wal: undefined };
    },
    close: async () => {
      closing ??= close();
      await closing;
    },
  };
}

/** Runs each step until it deletes nothing. A close ends that between two statements. */
async function prune<Row>(
  steps: readonly (() => Promise<readonly Row[]>)[],
  isClosing: () => boolean,
  onDeleted: (row: Row) => void,
): Promise<void> {
  for (const step of steps) {
    for (let isMore = true; isMore && !isClosing();) {
      const deleted = await step();
      for (const row of deleted) onDeleted(row);
      isMore = deleted.length > 0;
    }
  }
}

interface ReportedQueries {
  /** Emits a failure as that of a commit. @throws {StoreError} */
  readonly read: Database['query'];
  /** Emits the commit, or its failure. @throws {StoreError} */
  readonly write: Database['query'];
}

function createReportedQueries(
  database: Pick<Database, 'query'>,
  clock: Clock,
  emit: Observer,
): ReportedQueries {
  const read: Database['query'] = async (statement, values) => {
    try {
      return await database.query(statement, values);
    } catch (error) {
      if (error instanceof StoreError) {
        emit({ type: 'store.commit_failed', reason: error.reason, error });
      }
      throw error;
    }
  };
  return {
    read,
    write: async <Row>(statement: Statement, values?: readonly unknown[]) => {
      const started = clock.monotonic();
      const written = await read<Row>(statement, values);
      emit({ type: 'store.committed', durationMs: clock.monotonic() - started });
      return written;
    },
  };
}

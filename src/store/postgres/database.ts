import { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import {
  Client,
  type ClientBase,
  type ClientConfig,
  type CustomTypesConfig,
  DatabaseError,
  Pool,
  type PoolClient,
  type QueryConfig,
  types,
} from 'pg';
import { limitConcurrency } from '../../concurrency/limit-concurrency.ts';
import { StoreError } from '../../monitor/errors.ts';
import { isCollision, isNoPrimary, isOutcomeUnknown, toStoreError } from './errors.ts';
import { createSilenceWatch, SilentConnectionError, type SilenceWatch } from './silence.ts';
import { fromStored, parseStored } from './sql/text.ts';
import type { ConnectionSettings, Server } from './url.ts';

/** A statement; one with a name is planned once for each connection, after {@link Database.keepPlans}. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** The one server that takes writes, of those that are named. */
export interface Database {
  /**
   * Runs one statement, committed when it resolves, and returns its rows. If its connection goes silent, the statement is
   * sent once more on another: it must be safe to run twice. @throws {StoreError}
   */
  query<Row>(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** The same for a statement of which one must know: `unknown` if it may have been committed, or may be yet. */
  attempt<Row>(statement: Statement, values: readonly unknown[]): Promise<Attempt<Row>>;
  /**
   * Runs statements in one transaction, on one connection.
   * @param statementMs how long each may take, where that is longer than usual @throws {StoreError}
   */
  transaction<Result>(
    work: (run: RunInTransaction) => Promise<Result>,
    statementMs?: number,
  ): Promise<Result>;
  /** The tables are no longer new: a plan that was made for empty ones would read all of each when they are full. */
  keepPlans(): void;
  /** Ends when all that was begun has ended. */
  close(): Promise<void>;
}

export type RunInTransaction = <Row>(
  text: string,
  values?: readonly unknown[],
) => Promise<readonly Row[]>;

type Attempt<Row> =
  | { readonly rows: readonly Row[]; readonly error?: never; readonly unknown?: never }
  | { readonly rows?: never; readonly error: StoreError; readonly unknown: boolean };

type Work<Result> = (client: PoolClient, by: Route) => Promise<Result>;

export interface DatabaseOptions {
  readonly settings: ConnectionSettings;
  readonly connections: number;
  /**
   * How long a statement may take before it, and every connection to this server, is given up; and how long it may wait for
   * a connection before that, or else is not sent.
   */
  readonly patienceMs: number;
  /** Aborted when nobody waits any longer: what was begun is given up, and what comes then has little time. */
  readonly signal?: AbortSignal;
}

/** Oldest major version that is tested (docs/scaling.md#run-it). */
const OLDEST_MAJOR = 15;
const CONNECT_MS = 3000;
/** The server's own limits, should we not be there any more to give up. */
const STATEMENT_MS = 60_000;
const IDLE_IN_TRANSACTION_MS = 10_000;
/** Delay of TCP keepalives. Firewalls forget a silent connection later than this. */
const KEEP_ALIVE_MS = 10_000;
const COLLISIONS = 5;
/** For what is begun after the signal. */
const LAST_MS = 1000;
/** For a server to take leave. */
const LEAVE_MS = 250;

/** The way to one server. */
interface Route {
  readonly pool: Pool;
  readonly silence: SilenceWatch;
}

/** Opens the database. A session keeps prepared statements, which a pooler may forbid (`prepared=false`), and its isolation. */
export function openDatabase(options: DatabaseOptions): Database {
  const { settings, connections, patienceMs, signal } = options;
  const { servers, secrets } = settings;
  /** Of `servers`, the one that was last found to be the one to write to. */
  let current = 0;
  const routes = servers.map(createRoute);
  const limitUse = limitConcurrency(connections, { maxMs: timeLeft, signal, error: tooManyWait });
  const inUse = new Set<PoolClient>();
  const sockets = new Set<Socket>();
  signal?.addEventListener('abort', () => {
    for (const client of inUse) client.end().catch(ignore);
  });
  const underWay = new Set<Promise<unknown>>();
  let keepsPlans = false;
  let closed = false;

  function timeLeft(): number {
    return signal?.aborted === true ? Math.min(LAST_MS, patienceMs) : patienceMs;
  }

  function configFor({ host, port, tls }: Server): ClientConfig {
    return {
      host,
      port,
      ssl: tls,
      stream: createSocket,
      user: settings.user,
      password: settings.password,
      database: settings.database,
      application_name: 'evalwatch',
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: STATEMENT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      types: TYPES,
    };
  }

  function createRoute(server: Server): Route {
    const pool = new Pool({
      ...configFor(server),
      max: connections,
      // They stay: a handshake takes longer than most statements.
      min: connections,
      query_timeout: patienceMs,
      // oxlint-disable-next-line typescript/no-misused-promises -- it is awaited, whatever its type says
      onConnect: prepareSession,
    });
    // A connection that breaks while nobody uses it is replaced when somebody does.
    pool.on('error', ignore);
    pool.on('connect', (client) => client.on('error', ignore));
    return { pool, silence: createSilenceWatch(() => openClient(server)) };
  }

  async function openClient(server: Server): Promise<Client> {
    const client = new Client({ ...configFor(server), query_timeout: CONNECT_MS });
    client.on('error', ignore);
    await client.connect();
    return client;
  }

  function createSocket(): Socket {
    const socket = new Socket();
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  }

  /** Leaves a server that does not answer, or not as the one to write to, with every connection to it. */
  function leaveServer(left: Route): void {
    const index = routes.indexOf(left);
    const server = servers[index];
    if (server === undefined || closed) return;
    if (index === current) current = (index + 1) % servers.length;
    routes[index] = createRoute(server);
    left.pool.end().catch(ignore);
  }

  async function connect(): Promise<{ readonly client: PoolClient; readonly by: Route }> {
    let refusal: unknown;
    let last: unknown;
    for (const index of [...servers.keys().drop(current), ...servers.keys().take(current)]) {
      const by = routes[index];
      if (by === undefined) continue;
      try {
        return { client: await by.pool.connect(), by };
      } catch (error) {
        if (error instanceof DatabaseError && !isNoPrimary(error)) {
          // Just this connection: there are too many, or the password has changed.
          refusal ??= error;
        } else {
          last = error;
          leaveServer(by);
        }
      }
    }
    throw toStoreError(refusal ?? last, secrets);
  }

  async function withClient<Result>(work: Work<Result>) {
    // The pool would end the waiting for a connection after the time that it allows a server to answer.
    return await limitUse(() => withConnection(work));
  }

  async function withConnection<Result>(work: Work<Result>) {
    const { client, by } = await connect();
    inUse.add(client);
    try {
      const result = await work(client, by);
      client.release();
      return result;
    } catch (error) {
      const isLost = isOutcomeUnknown(error);
      client.release(isLost);
      if (isNoPrimary(error) || isUnanswered(error)) leaveServer(by);
      throw error;
    } finally {
      inUse.delete(client);
    }
  }

  async function tracked<Result>(work: () => Promise<Result>): Promise<Result> {
    if (closed) throw new StoreError('other', 'the store is closed');
    const running = work();
    underWay.add(running);
    try {
      return await running;
    } finally {
      underWay.delete(running);
    }
  }

  async function run<Row>(statement: Statement, values: readonly unknown[]) {
    const { name, text } = statement;
    const config: QueryConfig = {
      text,
      values: [...values],
      ...(keepsPlans && settings.prepared && name !== undefined && { name }),
    };
    for (let left = COLLISIONS; ; left -= 1) {
      try {
        return await withClient(async (client, { silence }) => {
          const limited = { ...config, query_timeout: timeLeft() };
          const answer = client.query<Row & object>(limited);
          return (await silence.during(text, client, answer)).rows;
        });
      } catch (error) {
        if (left === 0 || !isCollision(error)) throw error;
      }
    }
  }

  return {
    query: async <Row>(statement: Statement, values: readonly unknown[] = []) =>
      tracked(async () => {
        try {
          return await run<Row>(statement, values).catch((error: unknown) => {
            if (error instanceof SilentConnectionError) return run<Row>(statement, values);
            throw error;
          });
        } catch (error) {
          throw toStoreError(error, secrets);
        }
      }),
    attempt: async <Row>(statement: Statement, values: readonly unknown[]) =>
      tracked(async (): Promise<Attempt<Row>> => {
        try {
          return { rows: await run<Row>(statement, values) };
        } catch (error) {
          // A StoreError comes from connecting: nothing was sent.
          const unknown = !(error instanceof StoreError) && isOutcomeUnknown(error);
          return { error: toStoreError(error, secrets), unknown };
        }
      }),
    transaction: async (work, statementMs) =>
      tracked(async () => {
        try {
          return await withClient(async (client) => {
            const runOne: RunInTransaction = async <Row>(
              text: string,
              values: readonly unknown[] = [],
            ) => {
              const limit = statementMs === undefined ? {} : { query_timeout: statementMs };
              const config: QueryConfig = { text, values: [...values], ...limit };
              return (await client.query<Row & object>(config)).rows;
            };
            await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
            try {
              if (statementMs !== undefined) await runOne(LIMIT, [statementMs]);
              const result = await work(runOne);
              await client.query('COMMIT');
              return result;
            } catch (error) {
              if (!isOutcomeUnknown(error)) await client.query('ROLLBACK');
              throw error;
            }
          });
        } catch (error) {
          throw toStoreError(error, secrets);
        }
      }),
    keepPlans: () => {
      keepsPlans = true;
    },
    close: async () => {
      while (underWay.size > 0) {
        await Promise.allSettled(underWay);
      }
      closed = true;
      const left = Promise.all(routes.map(({ pool }) => pool.end()));
      // One that says nothing any more does not take leave, and its sockets would keep the process.
      await Promise.race([left, pause(LEAVE_MS, undefined, { ref: false })]);
      for (const socket of sockets) socket.destroy();
      await left;
    },
  };
}

/** Parsers of values by type; others are pg's. */
const PARSERS = new Map<number, (text: string) => unknown>([
  // Counts, keys and times, which a number holds.
  [types.builtins.INT8, Number],
  [types.builtins.TEXT, fromStored],
  [types.builtins.JSON, parseStored],
]);
const TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) => PARSERS.get(oid) ?? types.getTypeParser(oid, format),
};

interface Session {
  readonly version: number;
  readonly read_only: string;
  readonly encoding: string;
}

/**
 * A database can begin its sessions with another isolation: under one that keeps a snapshot, a statement that has waited
 * for another fails where it should see what that one has done.
 */
const PREPARE = `SELECT current_setting('server_version_num')::integer AS version,
    current_setting('transaction_read_only') AS read_only, current_setting('server_encoding') AS encoding,
    set_config('default_transaction_isolation', 'read committed', false)`;

/** @throws {StoreError} if this server is too old, or none to write to, or cannot hold every text */
async function prepareSession(client: ClientBase): Promise<void> {
  const [session] = (await client.query<Session>(PREPARE)).rows;
  const { version, read_only: readOnly, encoding } = session ?? NO_SESSION;
  const major = Math.floor(version / 10_000);
  if (major < OLDEST_MAJOR) {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env is of PostgreSQL ${major}, and evalwatch needs ${OLDEST_MAJOR} or newer`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env has the encoding ${encoding}, and evalwatch needs UTF8: make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (readOnly !== 'off') {
    throw new StoreError(
      'io',
      'no server of store.postgres_url_file or _env takes writes: all are standbys',
    );
  }
}

/** Sets the time limit of a long statement, and lets the server end it when its client is gone: it holds locks. */
const LIMIT = `SELECT set_config('statement_timeout', $1, true),
    CASE WHEN version() LIKE '%linux%' THEN set_config('client_connection_check_interval', '10s', true) END`;

const NO_SESSION: Session = { version: 0, read_only: '', encoding: '' };

function isUnanswered(error: unknown): boolean {
  const isTimeout = error instanceof Error && error.message === 'Query read timeout';
  return isTimeout || error instanceof SilentConnectionError;
}

function tooManyWait(): StoreError {
  return new StoreError(
    'io',
    'the database of store.postgres_url_file or _env has not answered what was asked before',
  );
}

function ignore(): void {
  // Whoever uses the connection is told.
}

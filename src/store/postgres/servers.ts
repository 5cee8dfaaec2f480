import { Socket } from 'node:net';
import {
  type ClientBase,
  type ClientConfig,
  DatabaseError,
  Pool,
  type PoolClient,
  types,
} from 'pg';
import { StoreError } from '../../monitor/errors.ts';
import type { Clock } from '../../monitor/ports/clock.ts';
import { isNoPrimary, toStoreError } from './errors.ts';
import type { ConnectionSettings, Server } from './url.ts';

/** Oldest major version that is tested (docs/scaling.md#run-it). */
const MIN_MAJOR = 15;
export const CONNECT_MS = 3000;
/** Limits that the server enforces, even if this process has ended. */
const STATEMENT_MS = 60_000;
const IDLE_IN_TRANSACTION_MS = 10_000;
/** Delay of TCP keepalives. Firewalls drop a silent connection only after a longer time. */
const KEEP_ALIVE_MS = 10_000;
/** Longest wait of a close for servers to end their connections, ms. */
const CLOSE_MS = 250;

/** The servers of a connection string, of which one takes writes. */
export class Servers {
  readonly #settings: ConnectionSettings;
  readonly #limits: { readonly max: number; readonly query_timeout: number };
  /** The connections to each server, in the order in which the servers are tried. */
  readonly #pools = new Map<Server, Pool>();
  readonly #sockets = new Set<Socket>();
  #isClosed = false;

  /** @param timeoutMs time limit of a statement */
  constructor(settings: ConnectionSettings, connections: number, timeoutMs: number) {
    this.#settings = settings;
    this.#limits = { max: connections, query_timeout: timeoutMs };
    for (const server of settings.servers) this.#add(server);
  }

  #add(server: Server): void {
    const pool = new Pool({
      ...sessionConfig(this.#settings, server, () => this.#createSocket()),
      ...this.#limits,
      // Idle connections stay open: a handshake takes longer than most statements.
      min: this.#limits.max,
      // oxlint-disable-next-line typescript/no-misused-promises -- it is awaited, whatever its type says
      onConnect: prepareSession,
    });
    // An idle connection that breaks is replaced when it is needed.
    pool.on('error', ignore);
    pool.on('connect', (client) => client.on('error', ignore));
    this.#pools.set(server, pool);
  }

  #createSocket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    return socket.once('close', () => this.#sockets.delete(socket));
  }

  /**
   * Takes a connection to the server that takes writes, the last such server first. `leave` drops every connection to that
   * server, because it does not answer or takes no writes, and lets it be tried last. @throws {StoreError}
   */
  async connect(): Promise<{ readonly client: PoolClient; readonly leave: () => void }> {
    let refusal: unknown;
    let last: unknown;
    for (const server of this.#pools.keys().toArray()) {
      const pool = this.#pools.get(server);
      const leave = () => this.#leave(server, pool);
      try {
        const client = await pool?.connect();
        if (client !== undefined) return { client, leave };
      } catch (error) {
        if (error instanceof DatabaseError && !isNoPrimary(error)) {
          // Only this connection is refused: there are too many, or the password has changed.
          refusal ??= error;
        } else {
          last = error;
          leave();
        }
      }
    }
    throw toStoreError(refusal ?? last, this.#settings.secrets);
  }

  #leave(server: Server, pool: Pool | undefined): void {
    if (pool === undefined || this.#pools.get(server) !== pool || this.#isClosed) return;
    this.#pools.delete(server);
    this.#add(server);
    pool.end().catch(ignore);
  }

  /** Closes every connection. */
  async close(clock: Clock): Promise<void> {
    this.#isClosed = true;
    const ended = Promise.all(Array.from(this.#pools.values(), (pool) => pool.end()));
    // A server that is silent does not end its connections, and their sockets would keep the process alive.
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const timer = clock.timeout(CLOSE_MS, resolve).unref();
    await Promise.race([ended, isLate]);
    timer.cancel();
    for (const socket of this.#sockets) socket.destroy();
    await ended;
  }
}

/** Returns how to connect to this server. */
export function sessionConfig(
  { user, password, database }: ConnectionSettings,
  { host, port, tls }: Server,
  stream: () => Socket,
): ClientConfig {
  return {
    host,
    port,
    ssl: tls,
    stream,
    user,
    password,
    database,
    application_name: 'evalwatch',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: {
      // Counts, keys and times, which a number holds.
      getTypeParser: (oid, format) =>
        oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
    },
  };
}

/**
 * Sets the isolation, because a database can have another default: under one that keeps a snapshot, a statement that has
 * waited for another fails instead of seeing its changes.
 */
const PREPARE = `SELECT current_setting('server_version_num')::integer AS version,
    current_setting('transaction_read_only') = 'on' AS is_standby, current_setting('server_encoding') AS encoding,
    set_config('default_transaction_isolation', 'read committed', false)`;

interface Session {
  readonly version: number;
  readonly is_standby: boolean;
  readonly encoding: string;
}

/** @throws {StoreError} if this server is too old, takes no writes, or cannot hold every text */
async function prepareSession(client: ClientBase): Promise<void> {
  const [session] = (await client.query<Session>(PREPARE)).rows;
  if (session === undefined) throw new Error('a SELECT without FROM has one row');
  const { version, is_standby: isStandby, encoding } = session;
  const major = Math.floor(version / 10_000);
  if (major < MIN_MAJOR) {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env is of PostgreSQL ${major}, and evalwatch needs ${MIN_MAJOR} or newer`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new StoreError(
      'other',
      `the database of store.postgres_url_file or _env has the encoding ${encoding}, and evalwatch needs UTF8: make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (isStandby) {
    throw new StoreError(
      'io',
      'no server of store.postgres_url_file or _env takes writes: all are standbys',
    );
  }
}

function ignore(): void {
  // Statements on the connection reject with the same error.
}

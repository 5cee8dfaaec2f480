import { Socket } from 'node:net';
import { DatabaseError, Pool, type PoolClient } from 'pg';
import type { Clock } from '../../monitor/ports/clock.ts';
import { isNoPrimary, toStoreError } from './errors.ts';
import { prepareSession, sessionConfig } from './session.ts';
import type { ConnectionSettings, Server } from './url.ts';

/** Longest wait of a close for servers to end their connections, ms. */
const CLOSE_MS = 250;

/** The servers of a connection string, of which one takes writes. */
export interface Servers {
  /** Takes a connection to the server that takes writes, the last such server first. @throws {StoreError} */
  connect(): Promise<{ readonly client: PoolClient; readonly pool: Pool }>;
  /** Drops every connection to a server that does not answer or takes no writes, and prefers the next server. */
  leave(pool: Pool): void;
  /** Closes every connection. */
  close(): Promise<void>;
}

export interface ServersOptions {
  readonly settings: ConnectionSettings;
  /** Number of connections to a server. */
  readonly connections: number;
  /** Time limit of a statement, ms. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export function createServers(options: ServersOptions): Servers {
  const { settings, connections, timeoutMs, clock } = options;
  const { servers, secrets } = settings;
  const pools = servers.map(createPool);
  /** Index of the server that took writes last. */
  let current = 0;
  const sockets = new Set<Socket>();
  let isClosed = false;

  function createPool(server: Server): Pool {
    const pool = new Pool({
      ...sessionConfig(settings, server, createSocket),
      max: connections,
      // Idle connections stay open: a handshake takes longer than most statements.
      min: connections,
      query_timeout: timeoutMs,
      // oxlint-disable-next-line typescript/no-misused-promises -- it is awaited, whatever its type says
      onConnect: prepareSession,
    });
    // An idle connection that breaks is replaced when it is needed.
    pool.on('error', ignore);
    pool.on('connect', (client) => client.on('error', ignore));
    return pool;
  }

  function createSocket(): Socket {
    const socket = new Socket();
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  }

  function leave(left: Pool): void {
    const index = pools.indexOf(left);
    const server = servers[index];
    if (server === undefined || isClosed) return;
    if (index === current) current = (index + 1) % servers.length;
    pools[index] = createPool(server);
    left.end().catch(ignore);
  }

  return {
    connect: async () => {
      let refusal: unknown;
      let last: unknown;
      for (const index of [...servers.keys().drop(current), ...servers.keys().take(current)]) {
        const pool = pools[index];
        if (pool === undefined) continue;
        try {
          return { client: await pool.connect(), pool };
        } catch (error) {
          if (error instanceof DatabaseError && !isNoPrimary(error)) {
            // Only this connection is refused: there are too many, or the password has changed.
            refusal ??= error;
          } else {
            last = error;
            leave(pool);
          }
        }
      }
      throw toStoreError(refusal ?? last, secrets);
    },
    leave,
    close: async () => {
      isClosed = true;
      const ended = Promise.all(pools.map((pool) => pool.end()));
      // A server that is silent does not end its connections, and their sockets would keep the process alive.
      const { promise: isLate, resolve } = Promise.withResolvers<void>();
      const timer = clock.timeout(CLOSE_MS, resolve).unref();
      await Promise.race([ended, isLate]);
      timer.cancel();
      for (const socket of sockets) socket.destroy();
      await ended;
    },
  };
}

function ignore(): void {
  // Statements on the connection reject with the same error.
}

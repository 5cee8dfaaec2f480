import { Socket } from 'node:net';
import { Client, DatabaseError, Pool, type PoolClient } from 'pg';
import type { Clock } from '../../monitor/ports/clock.ts';
import { isNoPrimary, toStoreError } from './errors.ts';
import { CONNECT_MS, prepareSession, sessionConfig } from './session.ts';
import { createSilenceWatch, type SilenceWatch } from './silence.ts';
import type { ConnectionSettings, Server } from './url.ts';

/** Longest wait of a close for servers to end their connections, ms. */
const CLOSE_MS = 250;

/** The connections to one server. */
export interface Route {
  readonly pool: Pool;
  readonly silence: SilenceWatch;
}

/** The servers of a connection string, of which one takes writes. */
export interface Servers {
  /** Takes a connection to the server that takes writes, the last such server first. @throws {StoreError} */
  connect(): Promise<{ readonly client: PoolClient; readonly route: Route }>;
  /** Drops every connection to a server that does not answer or takes no writes, and prefers the next server. */
  leave(route: Route): void;
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
  const routes = servers.map(createRoute);
  /** Index of the server that took writes last. */
  let current = 0;
  const sockets = new Set<Socket>();
  let isClosed = false;

  function createRoute(server: Server): Route {
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
    return { pool, silence: createSilenceWatch(() => openClient(server), clock) };
  }

  async function openClient(server: Server): Promise<Client> {
    const config = sessionConfig(settings, server, createSocket);
    const client = new Client({ ...config, query_timeout: CONNECT_MS });
    client.on('error', ignore);
    await client.connect();
    return client;
  }

  function createSocket(): Socket {
    const socket = new Socket();
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  }

  function leave(left: Route): void {
    const index = routes.indexOf(left);
    const server = servers[index];
    if (server === undefined || isClosed) return;
    if (index === current) current = (index + 1) % servers.length;
    routes[index] = createRoute(server);
    left.pool.end().catch(ignore);
  }

  return {
    connect: async () => {
      let refusal: unknown;
      let last: unknown;
      for (const index of [...servers.keys().drop(current), ...servers.keys().take(current)]) {
        const route = routes[index];
        if (route === undefined) continue;
        try {
          return { client: await route.pool.connect(), route };
        } catch (error) {
          if (error instanceof DatabaseError && !isNoPrimary(error)) {
            // Only this connection is refused: there are too many, or the password has changed.
            refusal ??= error;
          } else {
            last = error;
            leave(route);
          }
        }
      }
      throw toStoreError(refusal ?? last, secrets);
    },
    leave,
    close: async () => {
      isClosed = true;
      const ended = Promise.all(routes.map(({ pool }) => pool.end()));
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

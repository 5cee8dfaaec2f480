import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { clientOf } from './client.ts';
import { createItemsByClient } from './items-by-client.ts';

export interface ConnectionLimits {
  /** Maximum number of connections of all clients together. */
  readonly maxConnections: number;
  /** Maximum number of connections of one client, which can be a proxy with many people behind it. */
  readonly maxPerClient: number;
}

interface Connection {
  readonly socket: Socket;
  readonly client: string;
  /** Number of requests with an unfinished answer. */
  requests: number;
}

/**
 * Limits the connections of a server without refusing new ones: above the limit, the client with the most idle
 * connections loses its oldest one. So a probe is answered while others hold connections open, even from the probe's own
 * address.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const { maxConnections, maxPerClient } = limits;
  const open = createItemsByClient<Connection>();
  /** Connections without an unfinished answer, the longest idle one first. */
  const idle = createItemsByClient<Connection>();
  /** Connections by their addresses, because a TLS socket and the connection below it are different objects. */
  const byEnd = new Map<string, Connection>();

  function remove(connection: Connection): void {
    open.delete(connection.client, connection);
    idle.delete(connection.client, connection);
  }

  function evictOldest(connections: ReadonlySet<Connection>): boolean {
    const [oldest] = connections;
    if (oldest === undefined) return false;
    remove(oldest);
    oldest.socket.destroy();
    return true;
  }

  function makeRoom(client: string): boolean {
    if (open.of(client).size >= maxPerClient) return evictOldest(idle.of(client));
    return open.size < maxConnections || evictOldest(idle.largest());
  }

  function accept(socket: Socket): void {
    const client = clientOf(socket.remoteAddress);
    if (!makeRoom(client)) {
      socket.destroy();
      return;
    }
    const end = endOf(socket);
    const connection: Connection = { socket, client, requests: 0 };
    byEnd.set(end, connection);
    open.add(client, connection);
    idle.add(client, connection);
    socket.once('close', () => {
      remove(connection);
      if (byEnd.get(end) === connection) byEnd.delete(end);
    });
  }

  function begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = byEnd.get(endOf(socket));
    if (connection === undefined) return;
    connection.requests += 1;
    idle.delete(connection.client, connection);
    response.once('close', () => {
      connection.requests -= 1;
      const isOpen = open.of(connection.client).has(connection);
      if (isOpen && connection.requests === 0) idle.add(connection.client, connection);
    });
  }

  server.prependListener('connection', accept);
  server.prependListener('request', begin);
}

function endOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

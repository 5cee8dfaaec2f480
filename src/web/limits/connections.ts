import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { clientOf } from './client.ts';
import { createItemsByClient } from './items-by-client.ts';

export interface ConnectionLimits {
  /** Maximum number of connections of all clients together. */
  readonly maxConnections: number;
  /** Maximum number of connections of one client, which can be a proxy with many people behind it. */
  readonly maxPerClient: number;
  /** Maximum number of unfinished answers of one connection: a client can send requests without reading the answers. */
  readonly maxAnswers: number;
  /** Maximum number of unfinished answers of all connections together. */
  readonly maxAllAnswers: number;
}

interface Connection {
  readonly socket: Socket;
  readonly client: string;
  /** Number of requests with an unfinished answer. */
  requests: number;
}

/**
 * Limits the connections of a server and their unfinished answers without refusing new connections: above the limit, the
 * client with the most idle connections loses its oldest one, or if none is idle, the client with the most connections.
 * A probe is thus answered while others hold connections open, also from the probe's own address, unless that address opens
 * connections faster than they are read. A connection with too many unfinished answers is closed.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const { maxConnections, maxPerClient, maxAnswers, maxAllAnswers } = limits;
  /** Number of unfinished answers of the open connections. */
  let answers = 0;
  const open = createItemsByClient<Connection>();
  /** Connections without an unfinished answer, the longest idle one first. */
  const idle = createItemsByClient<Connection>();
  /** Connections by {@link endOf}. */
  const byEnd = new Map<string, Connection>();

  const isOpen = (connection: Connection) => open.of(connection.client).has(connection);

  function remove(connection: Connection): void {
    if (isOpen(connection)) answers -= connection.requests;
    open.delete(connection.client, connection);
    idle.delete(connection.client, connection);
  }

  function close(connection: Connection | undefined): void {
    if (connection === undefined) return;
    remove(connection);
    connection.socket.destroy();
  }

  function makeRoom(client: string): void {
    const isFull = open.of(client).size >= maxPerClient;
    if (!isFull && open.size < maxConnections) return;
    const [oldestIdle] = isFull ? idle.of(client) : idle.largest();
    const [oldest] = isFull ? open.of(client) : open.largest();
    close(oldestIdle ?? oldest);
  }

  function accept(socket: Socket): void {
    const client = clientOf(socket.remoteAddress);
    makeRoom(client);
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
    if (connection === undefined || !isOpen(connection)) return;
    connection.requests += 1;
    answers += 1;
    idle.delete(connection.client, connection);
    response.once('close', () => {
      if (!isOpen(connection)) return;
      connection.requests -= 1;
      answers -= 1;
      if (connection.requests === 0) idle.add(connection.client, connection);
    });
    if (connection.requests > maxAnswers) {
      close(connection);
      dropFurtherRequests(socket);
    } else if (answers > maxAllAnswers) {
      close(busiest());
    }
  }

  function busiest(): Connection | undefined {
    let found: Connection | undefined;
    for (const each of open.all()) if (each.requests > (found?.requests ?? 0)) found = each;
    return found;
  }

  server.prependListener('connection', accept);
  server.prependListener('request', begin);
  server.prependListener('checkExpectation', begin);
}

/**
 * Destroys a connection, and skips the rest of what Node has read from it. Node would make a request of each part of it
 * although the connection is closed: thousands in 64 KiB, which takes longer than everything else about the attack.
 */
function dropFurtherRequests(socket: Socket): void {
  socket.destroy();
  if ('parser' in socket && typeof socket.parser === 'object' && socket.parser !== null) {
    // With 2, as after an upgrade to another protocol, the parser leaves the rest alone.
    Object.assign(socket.parser, { onIncoming: () => 2 });
  }
}

/** Names a connection by its addresses, because a TLS socket and the connection below it are different objects. */
export function endOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

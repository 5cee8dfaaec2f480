import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';
import { tooMany } from './errors.ts';

/** Connection of a request. */
export interface ConnectionEnv {
  readonly Bindings: HttpBindings;
}

/** Maximum number of unfinished answers of one connection: a client can send requests without reading the answers. */
const MAX_UNFINISHED = 16;

/** The open connections of a server. */
export interface Connections {
  /** Closes all of them, also those in a TLS handshake. */
  close(): void;
}

/**
 * Keeps the number of connections at a maximum without refusing new ones: a new one replaces the one that has been idle for
 * longest. So a probe is answered while others hold connections open. A connection with more than {@link MAX_UNFINISHED}
 * unfinished answers is closed.
 */
export function limitConnections(server: Server, max: number): Connections {
  /** By their other end, because a TLS socket and the connection below it are different objects; the last used one is last. */
  const open = new Map<
    string,
    { readonly socket: Socket; readonly answers: Set<ServerResponse> }
  >();

  function makeRoom(): void {
    for (const [end, { socket, answers }] of open) {
      if (answers.size > 0) continue;
      open.delete(end);
      socket.destroy();
      return;
    }
  }

  server.on('connection', (socket) => {
    const end = endOf(socket);
    const connection = { socket, answers: new Set<ServerResponse>() };
    open.set(end, connection);
    socket.once('close', () => {
      if (open.get(end) === connection) open.delete(end);
      for (const response of connection.answers) {
        // After a CONNECT, Node does not close the answers that wait for earlier ones of their connection.
        if (response.socket !== null) continue;
        response.destroy();
        response.emit('close');
      }
    });
    if (open.size > max) makeRoom();
  });
  // Before the listener that answers.
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const end = endOf(socket);
    const connection = open.get(end);
    if (connection === undefined) return;
    connection.answers.add(response);
    response.once('close', () => {
      connection.answers.delete(response);
      if (open.get(end) !== connection) return;
      open.delete(end);
      open.set(end, connection);
    });
    if (connection.answers.size > MAX_UNFINISHED) socket.destroy();
  });
  return {
    close: () => {
      for (const { socket } of open.values()) socket.destroy();
    },
  };
}

function endOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/**
 * Limits the number of open answers; further requests get a 503.
 * @param readMs time that a client has to read an answer before its connection is closed, since the answer holds memory
 */
export function limitAnswers(max: number, readMs?: number): MiddlewareHandler<ConnectionEnv> {
  let open = 0;
  return async (context, next) => {
    const { incoming, outgoing } = context.env;
    // Its client left, perhaps during the login; it will not close again.
    if (outgoing.destroyed || incoming.socket.destroyed) return context.body(null);

    if (open >= max) throw tooMany('requests');
    open += 1;
    outgoing.once('close', () => {
      open -= 1;
    });
    await next();
    if (readMs === undefined || outgoing.destroyed) return undefined;
    // Not only the answer: it may wait behind earlier ones of its connection.
    const deadline = setTimeout(() => incoming.socket.destroy(), readMs);
    outgoing.once('close', () => clearTimeout(deadline));
    return undefined;
  };
}

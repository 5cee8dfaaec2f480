import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { getRequestListener, RequestError } from '@hono/node-server';
import { HTTPException } from 'hono/http-exception';
import type { Protection, TlsSettings } from '../domain/options.ts';
import { createApp } from './app.ts';
import type { WebContent } from './content.ts';
import { answerError } from './errors.ts';
import { limitConnections } from './limits.ts';
import type { ChangingProtection } from './security.ts';

export interface WebServer {
  /** Address of the server, `http://host:port` or `https://host:port`. */
  readonly url: string;
  /** Closes the server and all connections at once, also those with an unfinished answer. */
  close(): Promise<void>;
}

export interface WebAddress {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Further names of this server, in lower case, that a browser may use without a login; none by default. */
  readonly allowedHosts?: () => readonly string[];
}

export interface WebTimeouts {
  /** Time in which a request must have arrived, ms. */
  readonly requestMs: number;
  /** Time after which a connection is closed that sends and takes nothing, ms. */
  readonly idleMs: number;
}

const MAX_CONNECTIONS = 2000;
/** Connections that may wait to be accepted. With a short queue, a probe in a burst of connections waits until its kernel retries. */
const BACKLOG = 2000;
const MAX_HEADER_BYTES = 16 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Headers of every answer: a page of another site can neither embed it nor show it in a frame. */
const SECURITY = new Map([
  ['x-content-type-options', 'nosniff'],
  ['cross-origin-resource-policy', 'same-origin'],
  // The status page has a longer one (page/routes.ts).
  ['content-security-policy', "frame-ancestors 'none'"],
]);

/**
 * Serves the HTTP interface (docs/specification.md#endpoints), in plain HTTP and without a login unless it is protected.
 * Changed users and certificates take effect with the next request or connection. A change of users or of the CA for client
 * certificates closes all connections.
 * @throws {Error} that names web.listen, with the system's `code` (`EADDRINUSE`, `EACCES`, …), when it cannot listen
 */
export async function startWebServer(
  content: WebContent,
  { host, port, allowedHosts = () => [] }: WebAddress,
  protection?: ChangingProtection,
  { requestMs = REQUEST_TIMEOUT_MS, idleMs = IDLE_TIMEOUT_MS }: Partial<WebTimeouts> = {},
): Promise<WebServer> {
  const options = {
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: requestMs / 10,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const listen = host.replace(/^\[|\]$|\.$/g, '').toLowerCase();
  const names = () => ({ listen, allowed: allowedHosts() });
  const listener = listenerOf(content, createApp(content, names, protection).fetch);
  let before = protection?.current();
  const tls = before?.tls;
  const server =
    tls === undefined
      ? createServer(options, listener)
      : createTlsServer({ ...options, ...tlsOptions(tls) }, listener);
  // No limit by number: their total size is limited, and Node drops the headers above a number.
  server.maxHeadersCount = 0;
  server.setTimeout(idleMs);
  // No route needs a request body, and Node writes its 100 into the middle of an answer that waits for earlier ones.
  server.on('checkContinue', (...request) => server.emit('request', ...request));
  const connections = limitConnections(server, MAX_CONNECTIONS);
  protection?.onChange(() => {
    const now = protection.current();
    const context = now.tls?.context;
    if (
      'setSecureContext' in server &&
      context &&
      !isDeepStrictEqual(context, before?.tls?.context)
    ) {
      server.setSecureContext(context);
      server.closeIdleConnections();
    }
    if (!isDeepStrictEqual(admission(now), admission(before))) connections.close();
    before = now;
  });
  await startListening(server, { host, port });
  return {
    url: urlOf(server.address(), tls === undefined ? 'http' : 'https'),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      connections.close();
      await closed;
    },
  };
}

function listenerOf(
  { onBug }: WebContent,
  fetch: Parameters<typeof getRequestListener>[0],
): RequestListener {
  const answer = getRequestListener(fetch, {
    // A request over HTTP/1.0 may lack `Host`.
    hostname: 'localhost',
    errorHandler: (error) => {
      const message = 'the address or the Host header is malformed';
      const isBad = error instanceof RequestError;
      return answerError(isBad ? new HTTPException(400, { message }) : error, onBug);
    },
  });
  return (request, response) => {
    // Closed because of too many requests (limits.ts).
    if (request.socket.destroyed) return;
    response.setHeaders(SECURITY);
    void answer(request, response);
  };
}

function tlsOptions({ context, clientAuth }: TlsSettings) {
  return {
    ...context,
    requestCert: clientAuth !== 'NoClientCert',
    // Admission is decided for each request: probes are admitted, and others get an answer with the reason.
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  };
}

/** The part of a protection that decides who is admitted: not the certificate of the server. */
function admission(protection: Protection | undefined): unknown {
  return protection && [protection.users, protection.tls?.clientAuth, protection.tls?.context.ca];
}

/**
 * Checks that a server could listen, before a daemon opens its store.
 * @throws {Error} like {@link startWebServer}
 */
export async function assertCanListen(address: Pick<WebAddress, 'host' | 'port'>): Promise<void> {
  const server = createTcpServer();
  await startListening(server, address);
  server.close();
  await once(server, 'close');
}

async function startListening(
  server: TcpServer,
  { host, port }: Pick<WebAddress, 'host' | 'port'>,
): Promise<void> {
  server.listen(port, host, BACKLOG);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (error instanceof Error && 'code' in error) {
      const advice = LISTEN_ADVICE[String(error.code)] ?? '';
      error.message = `the daemon cannot listen on web.listen: ${error.message}${advice}`;
    }
    throw error;
  }
}

const SET_ANOTHER = 'set another one in web.listen or EVALWATCH_WEB_LISTEN';
const LISTEN_ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: `; another program, perhaps another evalwatch, uses this port: stop it, or ${SET_ANOTHER}`,
  EADDRNOTAVAIL: `; this machine does not have this address: ${SET_ANOTHER}`,
  ENOTFOUND: `; this name has no address: ${SET_ANOTHER}`,
  EACCES: `; this user may not use this port: ${SET_ANOTHER}`,
};

function urlOf(address: ReturnType<Server['address']>, scheme: string): string {
  if (address === null || typeof address === 'string') return String(address);
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `${scheme}://${host}:${address.port}`;
}

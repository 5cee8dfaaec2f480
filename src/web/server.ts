import { once } from 'node:events';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { createRequestFilter, type RequestFilter } from './request/filter.ts';
import type { GuardedHandlers } from './protection/guarded-server.ts';
import { type Handler, refuse } from './handler.ts';
import { limitConnections } from './limits/connections.ts';
import type { ChangingProtection } from './protection/changing-protection.ts';
import { parseHost } from './request/host.ts';
import { isForThisServer, type ServerNames } from './protection/server-names.ts';
import { createRoutes, type WebContent } from './routes.ts';
import { limitRequests } from './limits/requests.ts';

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

const CONNECTIONS = {
  maxConnections: 2000,
  maxPerClient: 100,
  maxAnswers: 16,
  // More than all places for answers (limits/requests.ts).
  maxAllAnswers: 1000,
};
/** Connections that may wait to be accepted. With a short queue, a probe in a burst of connections waits until its kernel retries. */
const BACKLOG = 2000;
const MAX_HEADER_BYTES = 16 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 30_000;

/**
 * Serves the HTTP interface (docs/specification.md#endpoints), in plain HTTP and without a login unless it is protected.
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
    // Host is checked with the request target (request/target.ts).
    requireHostHeader: false,
  };
  const listen = parseHost(host)?.name ?? host;
  const names = () => ({ listen, allowed: allowedHosts() });
  const { onBug } = content;
  const requestFilter = createRequestFilter(allowedHosts, onBug);
  const answer = limitRequests(routed(content), content.api.clock);
  const answers = { withLogin: answer, withoutLogin: requireOwnName(answer, names) };
  const server =
    protection === undefined
      ? createServer(options, requestFilter.filter(answers.withoutLogin))
      : await guarded(options, protection, { ...answers, onBug }, requestFilter);
  requestFilter.attach(server);
  // No limit by number: their total size is limited, and Node drops the headers above a number.
  server.maxHeadersCount = 0;
  limitConnections(server, CONNECTIONS);
  server.setTimeout(idleMs);
  await startListening(server, { host, port });
  return {
    url: urlOf(server.address(), protection?.first.tls === undefined ? 'http' : 'https'),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
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

/** Loads bcrypt only if the server is protected. */
async function guarded(
  options: ServerOptions,
  protection: ChangingProtection,
  answers: Omit<GuardedHandlers, 'filter'>,
  requestFilter: RequestFilter,
): Promise<Server> {
  const { createGuardedServer } = await import('./protection/guarded-server.ts');
  return createGuardedServer(options, protection, { ...answers, filter: requestFilter.filter });
}

/** Passes requests to the routes, with a URL made from the canonical target and a constant host. */
function routed(content: WebContent): Handler {
  const answer = getRequestListener(createRoutes(content).fetch);
  return (request, response, { path, search }) => {
    // @hono/node-server builds the URL from these two values.
    request.url = path + search;
    request.headers.host = 'evalwatch';
    void answer(request, response);
  };
}

/** Refuses requests of pages that let their own name resolve to this server (DNS rebinding). */
function requireOwnName(handle: Handler, names: () => ServerNames): Handler {
  return (request, response, target) => {
    if (isForThisServer(target, request.headers, names())) {
      return handle(request, response, target);
    }
    const error = `${target.host?.name} is not a known name of this server: add it to web.allowed_hosts, use the IP address, or set up a login`;
    return refuse(response, 421, error);
  };
}

function urlOf(address: ReturnType<Server['address']>, scheme: string): string {
  if (address === null || typeof address === 'string') return String(address);
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `${scheme}://${host}:${address.port}`;
}

import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Listener } from './guarded-server.ts';
import type { ChangingProtection } from './protection.ts';
import { createRoutes, type WebContent } from './routes.ts';

export interface WebServer {
  /** Where it listens, `http://host:port` or `https://host:port`. */
  readonly url: string;
  /** Ends at once what is still being answered. */
  close(): Promise<void>;
}

export interface WebAddress {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
}

/** Requests answered at the same time, health endpoints not counted; more get a 503. */
const MAX_IN_FLIGHT = 32;
/** Event streams, which stay open: they never keep a scrape out. */
const MAX_STREAMS = 500;
const MAX_CONNECTIONS = 2000;
const MAX_HEADER_BYTES = 16 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;
/** A client that has not read its answer by then is cut off: answers in flight hold memory. */
const ANSWER_TIMEOUT_MS = 15_000;
const IDLE_TIMEOUT_MS = 30_000;

/** Not whatever leads elsewhere, as `/-/../metrics` does. */
const PROBE = /^\/-\/(?:healthy|ready)(?:\?|$)/;

const OPTIONS = {
  headersTimeout: REQUEST_TIMEOUT_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  keepAliveTimeout: IDLE_TIMEOUT_MS,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: MAX_HEADER_BYTES,
};

/**
 * Serves the HTTP interface (contract 3), in the clear and to everybody unless it is protected.
 * @throws {Error} with the system's `code` (`EADDRINUSE`, `EACCES`, …) when it cannot listen.
 */
export async function startWebServer(
  content: WebContent,
  { host, port }: WebAddress,
  protection?: ChangingProtection,
): Promise<WebServer> {
  const answer = getRequestListener(createRoutes(content).fetch);
  const listener = withinLimits((request, response) => void answer(request, response));
  const server =
    protection === undefined
      ? createServer(OPTIONS, listener)
      : await guarded(protection, listener);
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(IDLE_TIMEOUT_MS);
  server.listen(port, host, MAX_CONNECTIONS);
  await once(server, 'listening');
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

/** What it takes is loaded only where it is needed. */
async function guarded(protection: ChangingProtection, listener: Listener): Promise<Server> {
  const { createGuardedServer } = await import('./guarded-server.ts');
  return createGuardedServer(OPTIONS, protection, listener);
}

/** Counts a request until its answer is read or its client gone; health endpoints always pass. */
function withinLimits(listener: Listener): Listener {
  const mayAnswer = atMost(MAX_IN_FLIGHT);
  const mayStream = atMost(MAX_STREAMS);
  return (request, response) => {
    if (PROBE.test(request.url ?? '')) return listener(request, response);
    const isStream = request.url?.split('?', 1)[0] === '/api/v1/events';
    if (!(isStream ? mayStream : mayAnswer)(response)) {
      response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' });
      return response.end(JSON.stringify({ error: 'too many requests at the same time' }));
    }
    if (!isStream) {
      const deadline = setTimeout(() => response.destroy(), ANSWER_TIMEOUT_MS);
      response.once('close', () => clearTimeout(deadline));
    }
    return listener(request, response);
  };
}

/** Whether one more response may be open at the same time; it then counts until it closes. */
function atMost(limit: number): (response: ServerResponse) => boolean {
  let open = 0;
  return (response) => {
    if (open >= limit) return false;
    open += 1;
    response.once('close', () => {
      open -= 1;
    });
    return true;
  };
}

function urlOf(address: ReturnType<Server['address']>, scheme: string): string {
  if (address === null || typeof address === 'string') return String(address);
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `${scheme}://${host}:${address.port}`;
}

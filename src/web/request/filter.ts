import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { fail, type Handler, type OnBug, refuse } from '../handler.ts';
import { RequestError } from './error.ts';
import { readTarget, type RequestTarget } from './target.ts';
import { isCrossSite } from '../protection/server-names.ts';

/** Headers of every answer: a page of another site can neither embed it nor show it in a frame. */
const SECURITY = new Map([
  ['x-content-type-options', 'nosniff'],
  ['cross-origin-resource-policy', 'same-origin'],
  // The status page has a longer one (page/routes.ts).
  ['content-security-policy', "frame-ancestors 'none'"],
]);
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
/** Status code by the error code of Node's parser; 400 for all other codes. */
const STATUS_OF_FAULT: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

export interface RequestFilter {
  /** Creates a listener that parses each request once and passes it to `handle`, or refuses it. */
  readonly filter: (handle: Handler) => RequestListener;
  /** Makes a server answer what never becomes a request in the same way as requests. */
  readonly attach: (server: Server) => void;
}

/**
 * Creates the first step of every request: refuses malformed ones, and changes that a page of another site sends.
 * @param names names of this server, for pages behind a proxy that changes `Host`
 */
export function createRequestFilter(names: () => readonly string[], onBug: OnBug): RequestFilter {
  /** Number of unfinished answers of a connection. */
  const pending = new WeakMap<Duplex, number>();

  function count(socket: Duplex, response: ServerResponse): void {
    pending.set(socket, (pending.get(socket) ?? 0) + 1);
    response.once('close', () => pending.set(socket, (pending.get(socket) ?? 1) - 1));
  }

  function targetOf(request: IncomingMessage, response: ServerResponse): RequestTarget | undefined {
    try {
      return readTarget(request);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      refuse(response, error.status, error.message);
      return undefined;
    }
  }

  function admit(request: IncomingMessage, response: ServerResponse, handle: Handler): void {
    const target = targetOf(request, response);
    if (target === undefined) return;
    const isChange = !SAFE_METHODS.has(request.method ?? '');
    if (isChange && isCrossSite(request.headers, target.host, names())) {
      refuse(response, 403, 'a page of another site must not send this request');
      return;
    }
    handle(request, response, target);
  }

  return {
    filter: (handle) => (request, response) => {
      // The answer before this one closes the connection; node:http would end the process if this request were answered.
      if (!request.socket.writable) return;
      count(request.socket, response);
      response.setHeaders(SECURITY);
      try {
        admit(request, response, handle);
      } catch (error) {
        fail(response, error, onBug);
      }
    },
    attach: (server) => {
      // No route needs a request body. Node's 100 could appear in the middle of an answer that waits for earlier ones.
      server.on('checkContinue', (...request) => server.emit('request', ...request));
      server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
        count(request.socket, response);
        response.setHeaders(SECURITY);
        refuse(response, 417, 'the only supported expectation is 100-continue');
      });
      server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
        // In the middle of an answer, the client would read the refusal as a part of it.
        if (!socket.writable || (pending.get(socket) ?? 0) > 0) socket.destroy();
        else socket.end(refusal(STATUS_OF_FAULT[error.code ?? ''] ?? 400), () => socket.destroy());
      });
    },
  };
}

/** The raw answer to input that is not a request. */
function refusal(status: number): string {
  const phrase = STATUS_CODES[status] ?? '';
  const body = JSON.stringify({ error: phrase.toLowerCase() });
  return [
    `HTTP/1.1 ${status} ${phrase}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...[...SECURITY].map((header) => header.join(': ')),
    '',
    body,
  ].join('\r\n');
}

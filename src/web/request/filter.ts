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

const NO_SNIFFING = ['x-content-type-options', 'nosniff'] as const;
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
/** Status codes of requests that Node's parser refuses; 400 for all others. */
const STATUS_OF_FAULT: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

export interface RequestFilter {
  /** Parses each request once and hands it on, or refuses it. */
  readonly enter: (handle: Handler) => RequestListener;
  /** Answers what never becomes a request, as it answers everything else. */
  readonly watch: (server: Server) => void;
}

/**
 * The first to see a request: it refuses malformed ones, and changes that another site asks for.
 * @param names of this server, for pages behind a proxy that changes `Host`
 */
export function createRequestFilter(names: () => readonly string[], onBug: OnBug): RequestFilter {
  /** Requests of a connection that are not answered to the end. */
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
      refuse(response, 403, 'a page of another site must not ask for this');
      return;
    }
    handle(request, response, target);
  }

  return {
    enter: (handle) => (request, response) => {
      // It came behind an answer that ends the connection: node:http ends the process if it is answered all the same.
      if (!request.socket.writable) return;
      count(request.socket, response);
      response.setHeader(...NO_SNIFFING);
      try {
        admit(request, response, handle);
      } catch (error) {
        fail(response, error, onBug);
      }
    },
    watch: (server) => {
      // No answer needs a body. Node's 100 would get into the middle of an answer that waits for others before it.
      server.on('checkContinue', (...request) => server.emit('request', ...request));
      server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
        count(request.socket, response);
        response.setHeader(...NO_SNIFFING);
        refuse(response, 417, 'no expectation can be met but 100-continue');
      });
      server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
        // Within an answer, the client would take the text of the refusal for a part of it.
        if (!socket.writable || (pending.get(socket) ?? 0) > 0) socket.destroy();
        else socket.end(refusal(STATUS_OF_FAULT[error.code ?? ''] ?? 400), () => socket.destroy());
      });
    },
  };
}

/** The bytes of an answer to what is no request. */
function refusal(status: number): string {
  const phrase = STATUS_CODES[status] ?? '';
  const body = JSON.stringify({ error: phrase.toLowerCase() });
  return [
    `HTTP/1.1 ${status} ${phrase}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    NO_SNIFFING.join(': '),
    '',
    body,
  ].join('\r\n');
}

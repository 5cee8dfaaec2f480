import type { Socket } from 'node:net';
import type { ApiFailureReason } from '../../src/monitor/errors.ts';
import { promptItem } from '../../test/support/service.ts';

/** A complete request to the hostile service, and the raw connection for the answer. */
export interface Exchange {
  readonly socket: Socket;
  /** Still percent-encoded. */
  readonly path: string;
  /** API key that the service expects. */
  readonly key: string;
  /** Address of another server on the same machine, which only hostile answers name. */
  readonly elsewhere: string;
  /** Number of earlier requests for this kind. */
  readonly turn: number;
  /** Must be called when the answer is complete: until then, the daemon's deadline counts. */
  readonly answered: () => void;
}

export type Answer = (exchange: Exchange) => void;

export interface Hostility {
  /** Allowed outcomes of a poll: reasons of a failure, or `ok` for a good listing in an unusual form. */
  readonly ends: readonly (ApiFailureReason | 'ok')[];
  readonly answer: Answer;
  /** Whether the answer asks to wait for minutes. */
  readonly holds?: true;
}

type HeaderLines = Readonly<Record<string, string | number>>;

const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'];

/** Listing that every project shows before and after: a prompt of each status. */
export const GOOD = JSON.stringify(
  STATUSES.map((status) => promptItem(status.toLowerCase(), status)),
);
/** Listing that must never be applied: most prompts have moved, and there is one more. */
export const TURNED = JSON.stringify(
  [...STATUSES, 'PLANTED'].map((status) => promptItem(status.toLowerCase(), 'RUNNING')),
).replace('"RUNNING"', '"FAILED"');

/** Log line that the daemon does not write, after a line break that a service may smuggle in. */
export const FORGED = '\r\n{"level":"error","event":"forged","msg":"not the daemon\'s"}\r\n';

/** Returns the status line and headers, which both echo the key. */
export function headOf({ key }: Exchange, status: number, headers: HeaderLines = {}): string {
  const lines = { 'content-type': 'application/json', 'x-echo': key, ...headers };
  const fields = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${key}\r\n${fields.join('')}\r\n`;
}

/** Returns a complete answer. */
export function whole(
  status: number,
  body: string | Buffer | ((exchange: Exchange) => string),
  headers: HeaderLines | ((exchange: Exchange) => HeaderLines) = {},
): Answer {
  return (exchange) => {
    const { socket } = exchange;
    const content = typeof body === 'function' ? body(exchange) : body;
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    const given = typeof headers === 'function' ? headers(exchange) : headers;
    socket.write(headOf(exchange, status, { 'content-length': bytes.length, ...given }), 'latin1');
    socket.write(bytes);
    exchange.answered();
  };
}

/** Returns a listing as the whole body of a 200. */
export function listing(body: string | Buffer | ((exchange: Exchange) => string), headers = {}) {
  return whole(200, body, headers);
}

/** Returns an answer that sends a head and these bytes, then calls `end`. */
export function unframed(
  headers: HeaderLines,
  body: string | Buffer,
  end: (exchange: Exchange) => void,
): Answer {
  return (exchange) => {
    exchange.socket.write(headOf(exchange, 200, headers), 'latin1');
    exchange.socket.write(body, () => end(exchange));
  };
}

/** Returns an answer that sends only these bytes, then calls `end`. */
export function bare(
  bytes: string | ((exchange: Exchange) => string),
  end: (exchange: Exchange) => void = fin,
): Answer {
  return (exchange) => {
    const text = typeof bytes === 'function' ? bytes(exchange) : bytes;
    exchange.socket.write(text, 'latin1', () => end(exchange));
  };
}

export const fin = ({ socket }: Exchange) => void socket.end();
export const reset = ({ socket }: Exchange) => void socket.resetAndDestroy();
export const silence = () => {};

export function chunked(...chunks: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(
    chunks.flatMap((chunk) => {
      const bytes = Buffer.from(chunk);
      return [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')];
    }),
  );
}

/** Writes what `next` returns, at the reader's pace, until that is undefined or the connection closes. */
export function pour({ socket }: Exchange, next: () => Buffer | undefined): void {
  const more = () => {
    while (!socket.destroyed) {
      const piece = next();
      if (piece === undefined || !socket.write(piece)) return;
    }
  };
  socket.on('drain', more);
  more();
}

/** Sends a text byte by byte, and nothing after its end. */
export function drip({ socket }: Exchange, text: string | Buffer, everyMs: number): void {
  const bytes = Buffer.from(text);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < bytes.length) socket.write(bytes.subarray(sent, (sent += 1)));
  }, everyMs);
  socket.once('close', () => clearInterval(timer));
}

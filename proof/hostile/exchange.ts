import type { Socket } from 'node:net';
import type { ApiFailureReason } from '../../src/monitor/errors.ts';
import { promptItem } from '../../test/support/service.ts';

/** A request that has arrived whole at the hostile service, and the bare connection to answer it on. */
export interface Exchange {
  readonly socket: Socket;
  /** As it was sent. */
  readonly path: string;
  /** The API key that came with it. */
  readonly key: string;
  /** Another server of the same machine, which nobody but a redirect names. */
  readonly elsewhere: string;
  /** How many came for this kind before it. */
  readonly turn: number;
  /** To be called when the answer is whole: until then the daemon's deadline counts. */
  readonly answered: () => void;
}

export type Answer = (exchange: Exchange) => void;

/** One way to be hostile. */
export interface Hostility {
  /** How a poll may end: why it fails, or `ok` where a good listing comes in strange dress. */
  readonly ends: readonly (ApiFailureReason | 'ok')[];
  readonly answer: Answer;
  /** It asks to stay away for minutes. */
  readonly holds?: true;
}

type HeaderLines = Readonly<Record<string, string | number>>;

const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'];

/** What every project shows before and after: a prompt of each status. */
export const GOOD = JSON.stringify(
  STATUSES.map((status) => promptItem(status.toLowerCase(), status)),
);
/** What may never be taken over: each of them has moved, and there is one more. */
export const TURNED = JSON.stringify(
  [...STATUSES, 'PLANTED'].map((status) => promptItem(status.toLowerCase(), 'RUNNING')),
).replace('"RUNNING"', '"FAILED"');

/** A line that no daemon has written; follows a line break wherever a service can smuggle one in. */
export const FORGED = '\r\n{"level":"error","event":"forged","msg":"not the daemon\'s"}\r\n';

/** Status line and headers, with the key echoed in one of them. */
export function headOf({ key }: Exchange, status: number, headers: HeaderLines = {}): string {
  const lines = { 'content-type': 'application/json', 'x-echo': key, ...headers };
  const fields = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${key}\r\n${fields.join('')}\r\n`;
}

/** A whole answer of HTTP. */
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

/** A listing as the whole body of a 200. */
export function listing(body: string | Buffer | ((exchange: Exchange) => string), headers = {}) {
  return whole(200, body, headers);
}

/** These bytes after an answer's head, and then `end`. */
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

/** These bytes and nothing else, and then `end`. */
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

/** Writes what `next` gives for as long as somebody reads; without an end unless it gives nothing. */
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

/** One byte of a text after the other; what is left when the text has ended is silence. */
export function drip({ socket }: Exchange, text: string | Buffer, everyMs: number): void {
  const bytes = Buffer.from(text);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < bytes.length) socket.write(bytes.subarray(sent, (sent += 1)));
  }, everyMs);
  socket.once('close', () => clearInterval(timer));
}

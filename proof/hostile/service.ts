import type { Socket } from 'node:net';
import { promptItem } from '../../test/support/service.ts';
import { KEY_FORMS } from '../../test/support/written-keys.ts';

// What a hostile service sends: raw bytes, over the socket of a request.

export interface Exchange {
  readonly socket: Socket;
  /** API key that the request had. */
  readonly key: string;
  /** Host and port of another server, which must never be asked. */
  readonly elsewhere: string;
}

export type Answer = (exchange: Exchange) => void;
type Text = string | Buffer | ((exchange: Exchange) => string);

const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'];

/** Listing of every project before and after: a prompt of each status. */
export const GOOD = JSON.stringify(
  STATUSES.map((status) => promptItem(status.toLowerCase(), status)),
);
/** Listing that must never be applied: most prompts have moved, and there is one more. */
export const TURNED = JSON.stringify(
  [...STATUSES, 'PLANTED'].map((status) => promptItem(status.toLowerCase(), 'RUNNING')),
).replace('"RUNNING"', '"FAILED"');
/** Log line that the daemon does not write, after a line break that a service may smuggle in. */
export const FORGED = '\r\n{"level":"error","event":"forged","msg":"not the daemon\'s"}\r\n';

/** Returns a key in each form in which it must not be revealed. */
export function echoesOf(key: string): readonly string[] {
  return Object.values(KEY_FORMS).map((write) => write(key));
}

/** Returns a text that reveals the key, forges a line and has characters that no text may keep. */
export function nastyText(key: string): string {
  return `${echoesOf(key).join(' ')}${FORGED}\u001b[2J\u2028\ud800`;
}

/** Returns a status line and headers, which both echo the key. */
function headOf({ key }: Exchange, status: number, headers: object = {}): string {
  const fields = Object.entries({ 'x-echo': key, connection: 'close', ...headers });
  return `HTTP/1.1 ${status} ${key}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** Returns an answer with this status and whole body. */
export function whole(
  status: number,
  body: Text,
  headers: object | ((exchange: Exchange) => object) = {},
): Answer {
  return (exchange) => {
    const content = Buffer.from(typeof body === 'function' ? body(exchange) : body);
    const given = typeof headers === 'function' ? headers(exchange) : headers;
    const head = headOf(exchange, status, { 'content-length': content.length, ...given });
    exchange.socket.write(head, 'latin1');
    exchange.socket.end(content);
  };
}

/** Returns an answer of these bytes, after a head if `headers` are given, and then an end. */
export function bytes(text: Text, end: Answer = fin, headers?: object): Answer {
  return (exchange) => {
    if (headers !== undefined) exchange.socket.write(headOf(exchange, 200, headers), 'latin1');
    const content = typeof text === 'function' ? text(exchange) : text;
    exchange.socket.write(content, 'latin1', () => end(exchange));
  };
}

export const fin: Answer = ({ socket }) => void socket.end();
export const reset: Answer = ({ socket }) => void socket.resetAndDestroy();
export const silence: Answer = () => {};

export function chunked(...chunks: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(
    chunks.flatMap((chunk) => {
      const content = Buffer.from(chunk);
      return [Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')];
    }),
  );
}

/** Returns an answer that sends a piece `times` times, at the reader's pace, and then ends. */
export function pour(piece: Buffer, times = Infinity, headers: object | null = {}): Answer {
  return (exchange) => {
    const { socket } = exchange;
    if (headers !== null) socket.write(headOf(exchange, 200, headers), 'latin1');
    let left = times;
    const more = () => {
      while (!socket.destroyed && left > 0) {
        left -= 1;
        if (!socket.write(piece)) return;
      }
      socket.end();
    };
    socket.on('drain', more);
    more();
  };
}

/** Returns an answer that sends a byte of a text every 500 ms, and nothing after its end. */
export function drip(text: string | Buffer, headers?: object): Answer {
  return (exchange) => {
    const { socket } = exchange;
    if (headers !== undefined) socket.write(headOf(exchange, 200, headers), 'latin1');
    const content = Buffer.from(text);
    let sent = 0;
    const timer = setInterval(() => {
      if (sent < content.length) socket.write(content.subarray(sent, (sent += 1)));
    }, 500);
    socket.once('close', () => clearInterval(timer));
  };
}

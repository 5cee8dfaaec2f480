import type { ServerResponse } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { promptItem, sendJson, type Arrival } from './service.ts';

// One hostile service each, of those that the contract names; every one of them echoes the key that it is sent.

/** The largest body that is read, in the test's configuration. */
export const LIMIT_BYTES = 256 * 1024;

type Answer = (response: ServerResponse, key: string, arrival: Arrival) => void;

export interface Hostility {
  readonly reason: string;
  readonly answer: Answer;
}

function status(code: number, headers: Readonly<Record<string, string>> = {}): Answer {
  return (response, key) => {
    const detail = [{ loc: ['path', key], msg: `wrong key ${key}`, type: 'echo' }];
    response.writeHead(code, { 'content-type': 'application/json', 'x-echo': key, ...headers });
    response.end(JSON.stringify({ detail }));
  };
}

function body(
  content: string | Buffer | ((key: string) => string),
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return (response, key) => {
    response.writeHead(200, { 'content-type': 'application/json', 'x-echo': key, ...headers });
    response.end(typeof content === 'function' ? content(key) : content);
  };
}

const GOOD = JSON.stringify([promptItem('planted', 'RUNNING')]);

/** A list of one good item that is nested so deep, the outer array included. */
export function nested(depth: number): string {
  return `[${JSON.stringify(promptItem('planted', 'RUNNING')).slice(0, -1)},"x":${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}}]`;
}

const BLANKS = Buffer.alloc(8 * 1024 * 1024, ' ');
// A gzip stream may have many members: 256 MiB.
const gzipBomb = Buffer.concat(Array<Buffer>(32).fill(gzipSync(BLANKS)));
const brotliBomb = brotliCompressSync(BLANKS);

function drip(response: ServerResponse, key: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'x-echo': key });
  response.write('[');
  const timer = setInterval(() => response.write(' '), 100);
  response.once('close', () => clearInterval(timer));
}

export const HOSTILITIES: Readonly<Record<string, Hostility>> = {
  'redirect elsewhere': {
    reason: 'redirect',
    answer: (response, key, arrival) => {
      const location = `http://${arrival.headers.host}/v2/projects/stolen/prompts/?key=${key}`;
      status(302, { location })(response, key, arrival);
    },
  },
  'redirect, permanent': {
    reason: 'redirect',
    answer: status(308, { location: '/v2/projects/stolen/prompts/' }),
  },
  'html instead of json': {
    reason: 'invalid_response',
    answer: body((key) => `<!doctype html><p>Sign in, ${key}</p>`),
  },
  'json cut short': { reason: 'invalid_response', answer: body(GOOD.slice(0, -1)) },
  'an object': { reason: 'invalid_response', answer: body((key) => `{"items":[],"k":"${key}"}`) },
  'nothing at all': { reason: 'invalid_response', answer: body('') },
  'not utf-8': {
    reason: 'invalid_response',
    answer: body(Buffer.from(GOOD.replace('planted', 'plant\xe9'), 'latin1')),
  },
  'nested 65 deep': { reason: 'invalid_response', answer: body(nested(65)) },
  'nested 50,000 deep': { reason: 'invalid_response', answer: body(nested(50_000)) },
  'no usable item': {
    reason: 'invalid_response',
    answer: body((key) => JSON.stringify([{ id: key }, { name: key }, null, 7])),
  },
  'gzip bomb': { reason: 'too_large', answer: body(gzipBomb, { 'content-encoding': 'gzip' }) },
  'brotli bomb': { reason: 'too_large', answer: body(brotliBomb, { 'content-encoding': 'br' }) },
  'broken gzip': {
    reason: 'invalid_response',
    answer: body(Buffer.from('this was never gzip'), { 'content-encoding': 'gzip' }),
  },
  'unknown coding': {
    reason: 'invalid_response',
    answer: body(GOOD, { 'content-encoding': 'rot13' }),
  },
  'too large, and says so': {
    reason: 'too_large',
    answer: body(`${GOOD}${' '.repeat(LIMIT_BYTES)}`),
  },
  'too large without end': {
    reason: 'too_large',
    answer: (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(64 * 1024)));
      };
      response.on('drain', more);
      more();
    },
  },
  'slow drip': { reason: 'timeout', answer: drip },
  hang: { reason: 'timeout', answer: () => {} },
  reset: { reason: 'network', answer: (response) => void response.socket?.resetAndDestroy() },
  truncated: {
    reason: 'network',
    answer: (response, key) => {
      response.writeHead(200, { 'content-length': GOOD.length, 'x-echo': key });
      response.write(GOOD.slice(0, 20), () => response.destroy());
    },
  },
  'not http': {
    reason: 'network',
    answer: (response, key) => void response.socket?.end(`HELLO ${key}\r\n\r\n`),
  },
  204: { reason: 'invalid_response', answer: (response) => void response.writeHead(204).end() },
  206: {
    reason: 'invalid_response',
    answer: (response) => sendJson(response, [promptItem('planted', 'RUNNING')], 206),
  },
  '304 that nobody asked for': {
    reason: 'invalid_response',
    answer: (response) => void response.writeHead(304, { etag: '"e"' }).end(),
  },
  400: { reason: 'client_error', answer: status(400) },
  401: { reason: 'auth', answer: status(401) },
  403: { reason: 'auth', answer: status(403) },
  404: { reason: 'not_found', answer: status(404) },
  408: { reason: 'client_error', answer: status(408) },
  422: { reason: 'validation', answer: status(422) },
  429: { reason: 'rate_limited', answer: status(429) },
  '429, come back soon': { reason: 'rate_limited', answer: status(429, { 'retry-after': '1' }) },
  '429, come back in an hour': {
    reason: 'rate_limited',
    answer: status(429, { 'retry-after': '3600' }),
  },
  500: { reason: 'server_error', answer: status(500) },
  '503, come back soon': { reason: 'server_error', answer: status(503, { 'retry-after': '1' }) },
  '503, come back in 4 minutes': {
    reason: 'server_error',
    answer: status(503, { 'retry-after': '240' }),
  },
};

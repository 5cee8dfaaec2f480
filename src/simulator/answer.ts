import { STATUS_CODES } from 'node:http';
import { gzip } from './encoding.ts';
import type { ItemStatus } from './world/listings.ts';
import type { Kind } from './world/records.ts';

/** A body of spaces, created only while it is sent. */
export interface Filler {
  readonly spaces: number;
}

/** Way in which an answer is sent to the client. */
export type Delivery =
  | { readonly kind: 'whole' }
  /** Nothing is sent, and the connection stays open. */
  | { readonly kind: 'hang' }
  /** The connection is reset before the status line, within the headers or within the body. */
  | { readonly kind: 'reset'; readonly when: ResetTime }
  /** The connection ends after `at` bytes of the body, by default after half of it. */
  | { readonly kind: 'truncate'; readonly at?: number | undefined; readonly chunked: boolean }
  | { readonly kind: 'drip'; readonly part: 'headers' | 'body'; readonly bytesPerSecond: number };

export const RESET_TIMES = ['before', 'headers', 'body'] as const;
type ResetTime = (typeof RESET_TIMES)[number];

/** The listing that a client can read from an answer. */
export interface ServedListing {
  readonly project: string;
  readonly kind: Kind;
  /** Undefined for an untrue 304: the client then keeps the listing that it received last. */
  readonly items: readonly ItemStatus[] | undefined;
  /** Whether the request had an If-None-Match header. */
  readonly conditional: boolean;
}

/** An answer before it is sent, as plain data. Faults convert one answer to another. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | Filler;
  /** Whether the answer has no Content-Length. */
  readonly chunked: boolean;
  readonly delayMs: number;
  readonly delivery: Delivery;
  readonly listing: ServedListing | undefined;
}

export function bodyAnswer(
  status: number,
  body: Buffer,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body,
    chunked: false,
    delayMs: 0,
    delivery: { kind: 'whole' },
    listing: undefined,
  };
}

export function jsonAnswer(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return bodyAnswer(status, Buffer.from(JSON.stringify(value)), headers);
}

/** Creates an answer without a body: 204, 304 or a redirect. */
export function emptyAnswer(
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { ...bodyAnswer(status, Buffer.alloc(0)), headers };
}

/** Creates an error in the format of the service; `detail` defaults to the name of the status code. */
export function errorAnswer(
  status: number,
  detail: string = STATUS_CODES[status] ?? 'Error',
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return jsonAnswer(status, { detail }, headers);
}

/** Creates a 422 with the validation body that the service documents. */
export function validationAnswer(parameter: string, msg: string, type: string): Answer {
  return jsonAnswer(422, { detail: [{ loc: ['path', parameter], msg, type }] });
}

/** Compresses an answer. An answer without a body, or with a compressed one, is returned unchanged. */
export function compressed(answer: Answer): Answer {
  const { body, headers } = answer;
  if (!Buffer.isBuffer(body) || body.length === 0 || 'content-encoding' in headers) return answer;
  return { ...answer, body: gzip(body), headers: { ...headers, 'content-encoding': 'gzip' } };
}

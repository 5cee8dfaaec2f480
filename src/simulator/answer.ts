import { STATUS_CODES } from 'node:http';
import { type Coding, contentEncoding, encode } from './encoding.ts';
import type { ItemStatus } from './world/listings.ts';
import type { Kind } from './world/records.ts';

/** So many spaces, made only while they are sent. */
export interface Filler {
  readonly spaces: number;
}

/** How an answer reaches the client, or does not. */
export type Delivery =
  | { readonly kind: 'whole' }
  /** Nothing is ever sent. */
  | { readonly kind: 'hang' }
  /** The connection is reset before the status line, within the headers, or in the middle of the body. */
  | { readonly kind: 'reset'; readonly when: ResetTime }
  /** The connection ends after so many bytes of the body, by default half of them. */
  | { readonly kind: 'truncate'; readonly at?: number | undefined; readonly chunked: boolean }
  | { readonly kind: 'drip'; readonly part: 'headers' | 'body'; readonly bytesPerSecond: number };

export const RESET_TIMES = ['before', 'headers', 'body'] as const;
type ResetTime = (typeof RESET_TIMES)[number];

/** The listing that a client can read out of an answer. */
export interface ServedListing {
  readonly project: string;
  readonly kind: Kind;
  /** Undefined in a 304 that is not true: the client takes it for the listing that it had last. */
  readonly items: readonly ItemStatus[] | undefined;
  /** The request named an ETag. */
  readonly conditional: boolean;
}

/** What is going to be sent. Pure data: faults turn one into another. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | Filler;
  /** Without a Content-Length. */
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

/** An answer without a body: 204, 304, a redirect. */
export function emptyAnswer(
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { ...bodyAnswer(status, Buffer.alloc(0)), headers };
}

/** An error in the service's words, by default those of the status code. */
export function errorAnswer(
  status: number,
  detail: string = STATUS_CODES[status] ?? 'Error',
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return jsonAnswer(status, { detail }, headers);
}

/** A 422 with the validation body of the service's document. */
export function validationAnswer(parameter: string, msg: string, type: string): Answer {
  return jsonAnswer(422, { detail: [{ loc: ['path', parameter], msg, type }] });
}

/** The same answer compressed; one without a body, or compressed already, stays as it is. */
export function compressed(answer: Answer, coding: Coding): Answer {
  const { body, headers } = answer;
  if (!Buffer.isBuffer(body) || body.length === 0 || 'content-encoding' in headers) return answer;
  const encoding = { 'content-encoding': contentEncoding(coding) };
  return { ...answer, body: encode(body, coding), headers: { ...headers, ...encoding } };
}

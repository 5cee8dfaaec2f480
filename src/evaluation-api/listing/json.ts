import type { Steps } from '../../domain/steps.ts';
import { isAscii, isUtf8 } from 'node:buffer';
import { ApiError } from '../../monitor/errors.ts';
import { type Keep, MAX_DEPTH, parsePartially } from './parse-partially.ts';

/**
 * Larger texts are parsed partially and in steps. JSON.parse is faster for small texts, but builds all fields of a large
 * one at once: a million of them take a second and hundreds of megabytes.
 */
const LARGE_BYTES = 256 * 1024;

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * Parses a body of JSON in UTF-8, with or without a byte order mark. For a large body, builds only the `wanted` parts.
 * @throws {ApiError} `invalid_response`; its message contains nothing of the body
 */
export function* readJson(body: Buffer, wanted: Keep): Steps<unknown> {
  if (body.length <= LARGE_BYTES) return parseJson(body);
  return yield* parseLarge(withoutMark(body), wanted);
}

/**
 * Parses a whole body, which has to be small; otherwise like `readJson`.
 * @throws {ApiError} `invalid_response`
 */
export function parseJson(body: Buffer): unknown {
  // Checked before parsing: code that walks through a deeply nested value could overflow the stack.
  if (isTooDeep(body)) {
    throw new ApiError('invalid_response', `the body is nested deeper than ${MAX_DEPTH}`);
  }
  return parse(withoutMark(body));
}

/**
 * Parses consecutive items of a JSON array. The stretch includes the bracket or comma before the first item and the one
 * after the last; both bytes are overwritten. For a large stretch, builds only the `wanted` parts.
 * @throws {ApiError} `invalid_response`
 */
export function* readItems(stretch: Buffer, wanted: Keep): Steps<readonly unknown[]> {
  stretch[0] = OPENING_BRACKET;
  stretch[stretch.length - 1] = CLOSING_BRACKET;
  const isLarge = stretch.length > LARGE_BYTES;
  const items = isLarge ? yield* parseLarge(stretch, wanted) : parse(stretch);
  if (!Array.isArray(items)) throw notJsonError();
  return items;
}

function parse(bytes: Buffer): unknown {
  const text = decode(bytes);
  try {
    return JSON.parse(text);
  } catch {
    throw notJsonError();
  }
}

function* parseLarge(bytes: Buffer, wanted: Keep): Steps<unknown> {
  const text = decode(bytes);
  yield;
  try {
    return yield* parsePartially(text, wanted);
  } catch (error) {
    throw error instanceof SyntaxError ? notJsonError() : error;
  }
}

export function notJsonError(): ApiError {
  return new ApiError('invalid_response', 'the body is not JSON');
}

function withoutMark(body: Buffer): Buffer {
  return body.subarray(body.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0);
}

function decode(bytes: Buffer): string {
  // Most bodies are ASCII, and decoding them as Latin-1 takes half the time.
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw new ApiError('invalid_response', 'the body is not UTF-8');
}

function isTooDeep(body: Buffer): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < body.length; index += 1) {
    const byte = body[index];
    if (byte === QUOTE) inString = !inString;
    else if (inString) index += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) depth += 1;
    else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

/** Returns whether a value is an object or array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

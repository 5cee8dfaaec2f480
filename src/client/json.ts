import { isAscii, isUtf8 } from 'node:buffer';
import { ApiError } from '../monitor/errors.ts';
import type { Scrub } from './secrets.ts';

/** Number of characters that an error shows before and after the place where a body is not JSON. */
const SHOWN_AROUND = 20;

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;

/**
 * Parses a body of JSON in UTF-8, with or without a byte order mark. The value can be nested too deep for a recursive function.
 * @throws {ApiError} `invalid_response`; its message says where the body is not JSON
 */
export function parseJson(body: Buffer, scrub: Scrub): unknown {
  const hasMark = body.subarray(0, 3).equals(BYTE_ORDER_MARK);
  return parse(decode(body.subarray(hasMark ? 3 : 0)), scrub);
}

/**
 * Decodes consecutive items of a JSON array, as an array of their own. The stretch includes the bracket or comma before the
 * first item and the one after the last; both bytes are overwritten.
 * @throws {ApiError} `invalid_response`, if it is not UTF-8
 */
export function decodeItems(stretch: Buffer): string {
  stretch[0] = OPENING_BRACKET;
  stretch[stretch.length - 1] = CLOSING_BRACKET;
  return decode(stretch);
}

/** Parses the text of an array. @throws {ApiError} as `parseJson` */
export function parseItems(text: string, scrub: Scrub): readonly unknown[] {
  const items = parse(text, scrub);
  if (!Array.isArray(items)) throw notJson('its brackets do not match');
  return items;
}

function parse(text: string, scrub: Scrub): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson(faultOf(scrub(text)));
  }
}

export function notJson(what: string): ApiError {
  return new ApiError('invalid_response', `the body is not JSON: ${what}`);
}

/** Says what is wrong with a text that is not JSON, and where. The text is scrubbed already, as what is said quotes it. */
function faultOf(text: string): string {
  // What is said if the text is JSON without the key.
  let message = 'the API key in it is not escaped';
  try {
    JSON.parse(text);
  } catch (error) {
    if (error instanceof Error) ({ message } = error);
  }
  // V8 quotes the text around a wrong token, and tells the position of other faults.
  const token = /^(?<what>Unexpected token .+?), (?:\.{3})?"(?<near>.*)"(?:\.{3})? is not/s.exec(
    message,
  );
  const other = /^(?<what>.+?)(?: in JSON)? at position (?<at>\d+)/.exec(message);
  const at = Number(other?.groups?.['at']);
  const near =
    token?.groups?.['near'] ??
    (other ? text.slice(Math.max(0, at - SHOWN_AROUND), at + SHOWN_AROUND) : '');
  const what = (token ?? other)?.groups?.['what'] ?? message;
  return `${what}${near === '' ? '' : ` near ${JSON.stringify(near)}`}`.toWellFormed();
}

function decode(bytes: Buffer): string {
  // Most bodies are ASCII, and decoding them as Latin-1 takes half the time.
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw new ApiError('invalid_response', 'the body is not UTF-8');
}

/** Returns whether a value is an object or array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

import { ApiError } from '../monitor/errors.ts';

/** Arrays and objects within each other, the outermost being 1 (contract 4, Fetching). */
const DEEPEST = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * The value of a body of JSON in UTF-8; a byte order mark is let pass.
 * @throws {ApiError} `invalid_response`; its message holds nothing of the body
 */
export function parseJson(body: Buffer): unknown {
  // Before parsing: what comes out of a deep body is a danger to whoever walks through it.
  if (isTooDeep(body)) {
    throw new ApiError('invalid_response', `the body is nested deeper than ${DEEPEST}`);
  }
  return parse(decode(body));
}

function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new ApiError('invalid_response', 'the body is not UTF-8');
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError('invalid_response', 'the body is not JSON');
  }
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
    if (depth > DEEPEST) return true;
  }
  return false;
}

/** An object or array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

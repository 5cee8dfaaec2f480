import { ApiError } from '../monitor/errors.ts';
import { type Keep, skim } from './skim.ts';

/** Arrays and objects within each other, the outermost being 1 (contract 4, Fetching). */
const DEEPEST = 64;

/** Values of a list's item, on average, or of an object, that are built without a thought. */
const USUAL_VALUES = 32;
const FEW_VALUES = 1000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * The value of a body of JSON in UTF-8; a byte order mark is let pass. Of one that is crowded, only what is `wanted` is
 * built, if that is said: a million fields take hundreds of megabytes.
 * @throws {ApiError} `invalid_response`; its message holds nothing of the body
 */
export function parseJson(body: Buffer, wanted?: Keep): unknown {
  // Before parsing: what comes out of a deep body is a danger to whoever walks through it.
  const build = buildOf(body);
  if (build === 'too deep') {
    throw new ApiError('invalid_response', `the body is nested deeper than ${DEEPEST}`);
  }
  const text = decode(body);
  try {
    return build === 'crowded' && wanted !== undefined ? skim(text, wanted) : JSON.parse(text);
  } catch {
    throw new ApiError('invalid_response', 'the body is not JSON');
  }
}

function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new ApiError('invalid_response', 'the body is not UTF-8');
  }
}

function buildOf(body: Buffer): 'usual' | 'crowded' | 'too deep' {
  let depth = 0;
  let inString = false;
  let isList = false;
  let items = 1;
  let values = 0;
  for (let index = 0; index < body.length; index += 1) {
    const byte = body[index];
    if (byte === QUOTE) inString = !inString;
    else if (inString) index += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) {
      if (depth === 0) isList = byte === OPENING_BRACKET;
      depth += 1;
      if (depth > DEEPEST) return 'too deep';
    } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1;
    else if (byte === COMMA) {
      if (depth === 1 && isList) items += 1;
      else values += 1;
    }
  }
  return values > USUAL_VALUES * items + FEW_VALUES ? 'crowded' : 'usual';
}

/** An object or array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

import type { FetchedErrorInfo } from '../domain/failure.ts';
import { cleanUnicode } from '../domain/visible.ts';
import { ApiError } from '../monitor/errors.ts';
import { isObject, parseJson } from './json.ts';
import { cleanText, cutUtf8, type Scrub } from './secrets.ts';

/** Longest id that is kept, in code points. */
const MAX_ERROR_ID_LENGTH = 1024;
/** Longest message that is kept, in bytes of UTF-8 (docs/specification.md#error_info). */
const MAX_ERROR_MSG_BYTES = 8192;

/**
 * Reads the error_info from the body of a prompt; undefined if it is absent or empty. What is not as documented is kept as
 * JSON (docs/specification.md#error_info).
 * @throws {ApiError} `invalid_response`
 */
export function readErrorInfo(body: Buffer, scrub: Scrub): FetchedErrorInfo | undefined {
  const prompt = parseJson(body, scrub);
  if (!isObject(prompt) || Array.isArray(prompt)) {
    throw new ApiError('invalid_response', 'the body is not an object');
  }
  const info = prompt['error_info'];
  const fields = isObject(info) && !Array.isArray(info) ? info : { error_msg: info };
  const { error_id: rawId, error_msg: rawMessage, ...others } = fields;
  const id = textOf(rawId);
  // Without a message, the other fields may say what happened.
  const message = textOf(rawMessage) ?? (Object.keys(others).length > 0 ? textOf(info) : null);
  if (id === null && message === null) return undefined;
  const whole = message && cleanUnicode(scrub(message));
  const kept = whole && cutUtf8(whole, MAX_ERROR_MSG_BYTES);
  const isAsDocumented =
    isObject(info) && id === (rawId ?? null) && message === (rawMessage ?? null);
  return {
    errorInfo: { error_id: id && cleanText(id, MAX_ERROR_ID_LENGTH, scrub), error_msg: kept },
    errorMsgTruncated: kept !== whole,
    ...(!isAsDocumented && { isUnusual: true }),
  };
}

/** Returns a text as it is and any other value as JSON; null for null, an empty array and a field that is absent. */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  const isAbsent =
    value === undefined || value === null || (Array.isArray(value) && value.length === 0);
  if (isAbsent) return null;
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ApiError('invalid_response', 'the error_info is nested too deep');
  }
}

import type { FetchedErrorInfo } from '../domain/failure.ts';
import { ApiError } from '../monitor/errors.ts';
import { isObject, parseJson } from './listing/json.ts';
import type { Scrub } from '../domain/scrub.ts';
import { cleanText, cutUtf8 } from './text.ts';

/** Longest id that is kept, in code points. */
const MAX_ERROR_ID_LENGTH = 1024;
/** Longest message that is kept, in bytes of UTF-8 (docs/specification.md#error_info). */
const MAX_ERROR_MSG_BYTES = 8192;

/**
 * Reads the error_info from the body of a prompt; undefined if it is absent or empty.
 * @throws {ApiError} `invalid_response`
 */
export function readErrorInfo(body: Buffer, scrub: Scrub): FetchedErrorInfo | undefined {
  const prompt = parseJson(body, scrub);
  if (!isObject(prompt) || Array.isArray(prompt)) {
    throw new ApiError('invalid_response', 'the body is not an object');
  }
  const info = prompt['error_info'];
  if (!isObject(info)) return undefined;
  const { error_id: id, error_msg: message } = info;
  if (typeof id !== 'string' && typeof message !== 'string') return undefined;
  const { kept, isWhole } = typeof message === 'string' ? readMessage(message, scrub) : NO_MESSAGE;
  return {
    errorInfo: {
      error_id: typeof id === 'string' ? cleanText(id, MAX_ERROR_ID_LENGTH, scrub) : null,
      error_msg: kept,
    },
    errorMsgTruncated: !isWhole,
  };
}

const NO_MESSAGE = { kept: null, isWhole: true };

function readMessage(message: string, scrub: Scrub) {
  const whole = scrub(message).toWellFormed();
  const kept = cutUtf8(whole, MAX_ERROR_MSG_BYTES);
  return { kept, isWhole: kept === whole };
}

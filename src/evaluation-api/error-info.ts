import type { ErrorInfo } from '../domain/failure.ts';
import { ApiError } from '../monitor/errors.ts';
import { isObject, parseJson } from './json.ts';
import { type Keep, SCALAR } from './skim.ts';
import { cutCodePoints, cutUtf8 } from './text.ts';

/** In code points. */
const LONGEST_ERROR_ID = 1024;
/** In bytes of UTF-8 (contract 4, Failures). */
const LONGEST_ERROR_MSG = 8192;

const TEXTS: Keep = { fields: new Map(['error_id', 'error_msg'].map((name) => [name, SCALAR])) };
/** All that is read of a single prompt. */
const WANTED: Keep = { fields: new Map([['error_info', TEXTS]]) };

export interface ReadErrorInfo {
  readonly errorInfo: ErrorInfo;
  readonly errorMsgTruncated: boolean;
}

/**
 * The error_info in the body of a single prompt; undefined if there is none, or nothing in it.
 * @throws {ApiError} `invalid_response`
 */
export function readErrorInfo(
  body: Buffer,
  scrub: (text: string) => string,
): ReadErrorInfo | undefined {
  const prompt = parseJson(body, WANTED);
  if (!isObject(prompt) || Array.isArray(prompt)) {
    throw new ApiError('invalid_response', 'the body is not an object');
  }
  const info = prompt['error_info'];
  if (!isObject(info)) return undefined;
  const id = textOf(info['error_id'], scrub);
  const whole = textOf(info['error_msg'], scrub);
  if (id === null && whole === null) return undefined;
  const message = whole === null ? null : cutUtf8(whole, LONGEST_ERROR_MSG);
  return {
    errorInfo: {
      error_id: id === null ? null : cutCodePoints(id, LONGEST_ERROR_ID),
      error_msg: message,
    },
    errorMsgTruncated: message !== whole,
  };
}

function textOf(value: unknown, scrub: (text: string) => string): string | null {
  return typeof value === 'string' ? scrub(value).toWellFormed() : null;
}

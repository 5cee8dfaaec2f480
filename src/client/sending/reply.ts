import { ApiError, type ApiErrorDetails, type ApiFailureReason } from '../../monitor/errors.ts';
import type { Exchange, ResponseHead } from './exchange.ts';
import { isUtf8 } from 'node:buffer';
import { isObject, parseJson } from '../json.ts';
import { parseRetryAfter } from './retry-after.ts';
import type { Scrub } from '../../domain/scrub.ts';
import { cleanText } from '../text.ts';

/** Limits in code points. */
const MAX_LOCATION_LENGTH = 1024;
const MAX_DETAIL_LENGTH = 2048;
const MAX_ETAG_LENGTH = 1024;

/** Status codes whose `Retry-After` is followed; some services answer 403 when a key has sent too many requests. */
const MAY_ASK_TO_WAIT: ReadonlySet<number> = new Set([403, 429, 503]);

export interface ReplyOptions {
  /** Whether an ETag was sent, so that the service may answer 304. */
  readonly conditional: boolean;
  readonly scrub: Scrub;
  /** Current time, epoch ms. */
  readonly now: number;
}

/**
 * Returns the body of a 200, or undefined for a 304 to a conditional request (docs/specification.md#fetching).
 * @throws {ApiError} for any other answer
 */
export function readReply(
  { head, body }: Pick<Exchange, 'head' | 'body'>,
  options: ReplyOptions,
): Buffer | undefined {
  if (head?.statusCode === 304 && options.conditional) return undefined;
  if (head !== undefined && head.statusCode !== 200) throw refusal(head, body, options);
  if (body instanceof ApiError) throw body;
  return body;
}

/** Returns the ETag of an answer; undefined if it cannot be sent back. */
export function etagOf(head: ResponseHead | undefined): string | undefined {
  const etag = head?.headers['etag'];
  const isSane =
    typeof etag === 'string' && etag.length <= MAX_ETAG_LENGTH && /^[\x21-\x7e]+$/.test(etag);
  return isSane ? etag : undefined;
}

/** Returns whether an answer has a `Link` header with the relation `next` (RFC 8288). */
export function hasNextPage(head: ResponseHead | undefined): boolean {
  const links = [head?.headers['link'] ?? []].flat().join(', ');
  return /;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next[\s"]|next\b)/i.test(links);
}

/** Returns the error with the address of the request and the status code of the answer, if there is one. */
export function withRequest(
  error: ApiError,
  { url, head }: { readonly url: string; readonly head: ResponseHead | undefined },
): ApiError {
  const statusCode = head?.statusCode;
  return new ApiError(error.reason, error.message, { ...error.details, url, statusCode });
}

function refusal(head: ResponseHead, body: Exchange['body'], options: ReplyOptions): ApiError {
  const { statusCode, headers } = head;
  const retryAfterMs = MAY_ASK_TO_WAIT.has(statusCode)
    ? parseRetryAfter(headers['retry-after'], options.now)
    : undefined;
  const isLimited = statusCode === 403 && retryAfterMs !== undefined;
  const reason = isLimited ? 'rate_limited' : reasonOf(statusCode);
  return new ApiError(reason, `the service answered ${statusCode}`, {
    statusCode,
    retryAfterMs,
    ...furtherDetails(reason, head, body, options),
  });
}

function reasonOf(statusCode: number): ApiFailureReason {
  switch (statusCode) {
    case 401:
    case 403:
      return 'auth';
    case 404:
      return 'not_found';
    case 422:
      return 'validation';
    case 429:
      return 'rate_limited';
    case 304:
      return 'invalid_response';
  }
  if (statusCode >= 600 || statusCode < 300) return 'invalid_response';
  if (statusCode >= 500) return 'server_error';
  return statusCode >= 400 ? 'client_error' : 'redirect';
}

function furtherDetails(
  reason: ApiFailureReason,
  { headers }: ResponseHead,
  body: Exchange['body'],
  { scrub }: ReplyOptions,
): ApiErrorDetails {
  if (reason === 'redirect') {
    const [location] = [headers['location'] ?? []].flat();
    return { location: location && cleanText(location, MAX_LOCATION_LENGTH, scrub) };
  }
  return { detail: body instanceof ApiError ? undefined : wordsOf(body, scrub) };
}

/**
 * Returns what the body of an error says, on one line: its `detail`, or else the body itself
 * (docs/specification.md#fetching); undefined if it is empty or not text.
 */
function wordsOf(body: Buffer, scrub: Scrub): string | undefined {
  const words = detailOf(body, scrub) ?? (isUtf8(body) ? body.toString() : '');
  // White space is joined after the scrub, because a key may contain spaces.
  const line = cleanText(words, MAX_DETAIL_LENGTH, scrub).replaceAll(/\s+/g, ' ').trim();
  // Copied, because a slice would keep the whole body in memory for as long as the error is shown.
  return line === '' ? undefined : Buffer.from(line).toString();
}

/** Returns the `detail` of a JSON body, as JSON if it is no text; undefined if there is none. */
function detailOf(body: Buffer, scrub: Scrub): string | undefined {
  try {
    const fault = parseJson(body, scrub);
    const detail = isObject(fault) ? fault['detail'] : undefined;
    return typeof detail === 'string' ? detail : JSON.stringify(detail);
  } catch (error) {
    // The body is not JSON, or nested too deeply for JSON.stringify.
    if (error instanceof ApiError || error instanceof RangeError) return undefined;
    throw error;
  }
}

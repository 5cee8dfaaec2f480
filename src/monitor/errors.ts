import type { AnomalySummary } from '../domain/record.ts';

/** Why the Evaluation Service gave no usable answer (docs/specification.md#fetching): a label of metrics. */
const API_FAILURE_REASONS = [
  'auth',
  'not_found',
  'validation',
  'rate_limited',
  'client_error',
  'server_error',
  'timeout',
  'network',
  'tls',
  'redirect',
  'invalid_response',
  'too_large',
] as const;
export type ApiFailureReason = (typeof API_FAILURE_REASONS)[number];

export const POLL_FAILURE_REASONS = [...API_FAILURE_REASONS, 'store'] as const;
export type PollFailureReason = (typeof POLL_FAILURE_REASONS)[number];

/** Reasons of failed polls, worded to follow "because". */
export const POLL_FAILURE_WORDS: Readonly<Record<PollFailureReason, string>> = {
  auth: 'the service refuses the API key, or the key cannot be read',
  not_found: 'the service has no such project (404)',
  validation: 'the service rejects the request as invalid (422)',
  rate_limited: 'the service asks for fewer requests (429)',
  client_error: 'the service refuses the request (4xx)',
  server_error: 'the service reports an internal error (5xx)',
  timeout: 'the service does not answer in time',
  network: 'the service cannot be reached',
  tls: 'no trusted TLS connection to the service is possible',
  redirect: 'the service redirects to another address, and evalwatch does not send the key there',
  invalid_response: 'the service sent an invalid answer',
  too_large:
    'the answer of the service exceeds max_response_size or max_items, or 1 MiB for an item',
  store: 'the poll could not be stored',
};

/** Replace the words for `auth` if the cause is known. */
export const REFUSED_KEY_WORDS = 'the service refuses the API key (401 or 403)';
export const NO_KEY_WORDS =
  'there is no API key to send: its file or variable cannot be read, is empty or does not hold a key';

export const STORE_FAILURE_REASONS = [
  'full',
  'io',
  'busy',
  'corrupt',
  'replaced',
  'other',
] as const;
export type StoreFailureReason = (typeof STORE_FAILURE_REASONS)[number];

/** Details of an `ApiError`. Every text is scrubbed of keys and cut. */
export interface ApiErrorDetails {
  /** Address that was requested; undefined if no request was sent. */
  readonly url?: string | undefined;
  /** Status code of the answer; undefined without an answer. */
  readonly statusCode?: number | undefined;
  /** Code of the error of a connection, such as `ECONNREFUSED`. */
  readonly code?: string | undefined;
  /** Target of a redirect. */
  readonly location?: string | undefined;
  /** What the service says in the body of an answer with an error status, on one line. */
  readonly detail?: string | undefined;
  /** Wait that the service asked for, ms, at most 5 minutes. */
  readonly retryAfterMs?: number | undefined;
  /** Anomalies of a listing without any usable item. */
  readonly anomalies?: readonly AnomalySummary[] | undefined;
  readonly cause?: unknown;
}

/** A failed request as the status page and the API show it. Texts of the service in it are scrubbed of keys and cut. */
export interface FailedRequest extends Pick<
  ApiErrorDetails,
  'url' | 'statusCode' | 'location' | 'detail'
> {
  readonly message: string;
}

/** Failure of a request to the Evaluation Service. Its message contains no key. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly reason: ApiFailureReason;
  readonly details: ApiErrorDetails;

  constructor(reason: ApiFailureReason, message: string, details: ApiErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.reason = reason;
    this.details = details;
  }
}

/** Failure of a store operation. The operation has changed nothing, except where its method says otherwise. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly reason: StoreFailureReason;

  constructor(reason: StoreFailureReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

/**
 * Codes of a wrong call. Node's own codes begin with `ERR_`; the few that follow here are about input and output, like the
 * codes of the system, TLS, SQLite and PostgreSQL, which begin otherwise.
 */
const WRONG_CALL =
  /^(?:ERR_(?!TLS_|SSL_|OSSL_|FS_|STRING_TOO_LONG$|STREAM_PREMATURE_CLOSE$|SOCKET_CONNECTION_TIMEOUT$)|UND_ERR_(?:INVALID_|NOT_SUPPORTED$))/;

/** Whether an error is a bug. Errors of evalwatch have a `reason`, others that are none have a `code`. */
export function isBug(error: unknown): boolean {
  if (!(error instanceof Error) || isMistake(error)) return true;
  if ('reason' in error) return false;
  return !('code' in error) || WRONG_CALL.test(String(error.code));
}

/** Whether an error is of a type that only a mistake in a program has. */
export function isMistake(error: Error): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
}

/** Whether a failure passes by itself. With any other reason the store has answered, and refused. */
export function isPassing({ reason }: StoreError): boolean {
  return reason === 'io' || reason === 'busy';
}

/** Returns the result of `work`; undefined if the store fails, which is reported elsewhere. */
export async function unlessStoreFails<Result>(
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

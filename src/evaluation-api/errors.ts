import { ApiError, type ApiFailureReason } from '../monitor/errors.ts';
import { REQUEST_FAILURE_REASONS, type RequestFailureReason } from '../monitor/events.ts';
import type { Scrub } from '../domain/scrub.ts';
import { cleanText } from './text.ts';

const MAX_MESSAGE_LENGTH = 300;

const TIMEOUT_CODE = /^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/;
/** Error codes of OpenSSL, of Node's certificate checks, and of TLS to a proxy. */
const TLS_CODE =
  /^(EPROTO$|ERR_(TLS|SSL|OSSL)_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)|PATH_LENGTH_|HOSTNAME_MISMATCH|ERROR_IN_C|UND_ERR_PRX_TLS)/;

/** Advice that does not help with a `ca_file`. */
const NODE_ADVICE =
  '; if the root CA is installed locally, try running Node.js with --use-system-ca';

/** Returns the `code` of an error of the system or a library, or else its name. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/**
 * Converts an error of undici or of a socket to an `ApiError` (docs/specification.md#fetching). Keeps only the text of the
 * error, which may hold bytes of the answer.
 */
export function connectionError(error: unknown, scrub: Scrub): ApiError {
  const code = codeOf(error);
  const cause = cleanText(textOf(error) || code, MAX_MESSAGE_LENGTH, scrub);
  const failed = (reason: ApiFailureReason, what: string) =>
    new ApiError(reason, `${what}: ${cause}`, { code });
  if (TIMEOUT_CODE.test(code)) return failed('timeout', 'the request timed out');
  if (TLS_CODE.test(code)) return failed('tls', 'the TLS connection failed');
  return failed('network', 'the connection failed');
}

/** Returns the text of an error, or of the errors of each address of a name, for which undici says a time limit that did not pass. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const { cause } = error;
  if (!(cause instanceof AggregateError)) return error.message.replace(NODE_ADVICE, '');
  return cause.errors.map((each: unknown) => textOf(each)).join('; ');
}

/**
 * Returns the metric label of a failed request; undefined for a failure that is counted by its status code
 * (docs/metrics.md#evaluation-service).
 */
export function requestFailure(reason: ApiFailureReason): RequestFailureReason | undefined {
  return REQUEST_FAILURE_REASONS.find((failure) => failure === reason);
}

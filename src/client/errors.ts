import { maxHeaderSize } from 'node:http';
import { errors } from 'undici';
import { ApiError, type ApiFailureReason } from '../monitor/errors.ts';
import { REQUEST_FAILURE_REASONS, type RequestFailureReason } from '../monitor/events.ts';
import type { Scrub } from '../domain/scrub.ts';
import { cleanText } from './text.ts';

const MAX_MESSAGE_LENGTH = 300;

const TIMEOUT_CODE = /^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/;
/** Error codes of OpenSSL, of Node's certificate checks, and of TLS to a proxy. */
const TLS_CODE =
  /^(EPROTO$|ERR_(TLS|SSL|OSSL)_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)|PATH_LENGTH_|HOSTNAME_MISMATCH|ERROR_IN_C|UND_ERR_PRX_TLS)/;

/** Error codes of OpenSSL for bytes that are not TLS. */
const NOT_TLS_CODE = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL)$/;
/** What OpenSSL says, between the address of a thread and a place in its source. */
const OPENSSL_MESSAGE = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:(?<what>[^:]+):.*$/s;
const PARSER_MESSAGE = /^Response does not match the HTTP\/1\.1 protocol \((.*)\)$/s;
/** Type of the first frame of a service that speaks HTTP/2, after its length of three bytes. */
const HTTP2_SETTINGS = '\x04';
const TLS_ALERT = '\x15\x03';
const HTTP2_ONLY = 'the service speaks only HTTP/2, and evalwatch HTTP/1.1';

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
  const failed = (reason: ApiFailureReason, ...parts: readonly string[]) => {
    const text = parts.map((part) => cleanText(part, MAX_MESSAGE_LENGTH, scrub)).join(': ');
    return new ApiError(reason, text, { code });
  };
  const name = unresolvedName(error);
  if (name !== undefined) {
    const reason = TIMEOUT_CODE.test(code) ? 'timeout' : 'network';
    const what =
      code === 'ENOTFOUND' ? 'DNS does not know the name' : 'DNS did not resolve the name';
    return failed(reason, `${what} ${name} (${code})`);
  }
  if (TIMEOUT_CODE.test(code)) return failed('timeout', 'the request timed out', textOf(error));
  if (NOT_TLS_CODE.test(code)) {
    return failed(
      'tls',
      'there is no TLS at this port: check the port, and whether the address must begin with http://',
    );
  }
  if (code.endsWith('NO_APPLICATION_PROTOCOL')) return failed('tls', HTTP2_ONLY);
  if (TLS_CODE.test(code)) return failed('tls', 'the TLS connection failed', textOf(error));
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return failed(
      'invalid_response',
      `the headers of the answer are larger than ${maxHeaderSize} bytes`,
    );
  }
  if (error instanceof errors.HTTPParserError && code !== 'HPE_INVALID_EOF_STATE') {
    return failed('invalid_response', ...notHttp(error));
  }
  return failed('network', 'the connection failed', textOf(error) || code);
}

/** Says what came in place of HTTP/1.1, of which undici keeps the bytes from the first wrong one on. */
function notHttp(error: errors.HTTPParserError): readonly string[] {
  const data = 'data' in error ? String(error.data) : '';
  if (data.startsWith('\0\0') && data[3] === HTTP2_SETTINGS) return [HTTP2_ONLY];
  if (data.startsWith(TLS_ALERT)) {
    return ['there is TLS at this port: the address must begin with https://'];
  }
  const what = error.message.replace(PARSER_MESSAGE, '$1');
  // Elsewhere the bytes could begin within a key.
  const isAtStart = what.startsWith('Expected HTTP/');
  return ['the answer is not HTTP/1.1', what, ...(isAtStart ? [JSON.stringify(data)] : [])];
}

/** Returns the name that could not be resolved, if that is the error. */
function unresolvedName(error: unknown): string | undefined {
  const isOfLookup =
    error instanceof Error && 'syscall' in error && error.syscall === 'getaddrinfo';
  return isOfLookup && 'hostname' in error ? String(error.hostname) : undefined;
}

/** Returns the text of an error, or of the errors of each address of a name, for which undici says a time limit that did not pass. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const each = error instanceof AggregateError ? error : error.cause;
  if (each instanceof AggregateError) {
    return each.errors.map((inner: unknown) => textOf(inner)).join('; ');
  }
  return error.message.replace(NODE_ADVICE, '').replace(OPENSSL_MESSAGE, '$<what>');
}

/**
 * Returns the metric label of a failed request; undefined for a failure that is counted by its status code
 * (docs/metrics.md#evaluation-service).
 */
export function requestFailure(reason: ApiFailureReason): RequestFailureReason | undefined {
  return REQUEST_FAILURE_REASONS.find((failure) => failure === reason);
}

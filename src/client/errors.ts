import { maxHeaderSize } from 'node:http';
import { errors } from 'undici';
import { ApiError, type ApiFailureReason } from '../monitor/errors.ts';
import { cleanText, cutCodePoints, type Scrub } from './secrets.ts';

/** Lengths in code points of what an error quotes. */
const MAX_MESSAGE_LENGTH = 300;
const MAX_BEGINNING_LENGTH = 200;
const MAX_TYPE_LENGTH = 100;
const MAX_ITEM_LENGTH = 200;

const TIMEOUT_CODE = /^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/;
/** Error codes of OpenSSL, of Node's certificate checks, and of TLS to a proxy. */
const TLS_CODE =
  /^(EPROTO$|ERR_(TLS|SSL|OSSL)_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(CA|PURPOSE)|PATH_LENGTH_|HOSTNAME_MISMATCH|ERROR_IN_C|UND_ERR_PRX_TLS)/;

/** Error codes of OpenSSL for bytes that are not TLS. */
const NOT_TLS_CODE = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL)$/;
/** What OpenSSL says, between the address of a thread and a place in its source. */
const OPENSSL_MESSAGE = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:(?<what>[^:]+):.*$/s;
const PARSER_MESSAGE = /^Response does not match the HTTP\/1\.1 protocol \((.*)\)$/s;
const TLS_ALERT = '\x15\x03';

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
  if (TIMEOUT_CODE.test(code)) return failed('timeout', 'the request timed out', textOf(error));
  if (NOT_TLS_CODE.test(code)) {
    return failed(
      'tls',
      'there is no TLS at this port: check the port, and whether the address must begin with http://',
    );
  }
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
  if (data.startsWith(TLS_ALERT)) {
    return ['there is TLS at this port: the address must begin with https://'];
  }
  const what = error.message.replace(PARSER_MESSAGE, '$1');
  // Elsewhere the bytes could begin within a key.
  const isAtStart = what.startsWith('Expected HTTP/');
  return ['the answer is not HTTP/1.1', what, ...(isAtStart ? [JSON.stringify(data)] : [])];
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
 * Returns what came in place of a usable body: its content type and its beginning.
 * @param body its first bytes, or all of them
 */
export function describeUnusable(body: Buffer, type: string, scrub: Scrub): string {
  const kind =
    type === ''
      ? 'it has no content type'
      : `its content type is ${quote(type, MAX_TYPE_LENGTH, scrub)}`;
  const begins =
    body.length === 0
      ? 'it is empty'
      : `it begins ${quote(body.toString(), MAX_BEGINNING_LENGTH, scrub)}`;
  return `${kind}; ${begins}`;
}

/** Says why an item of a listing cannot be used. */
export function describeItem(
  item: unknown,
  { index, isIdUsable }: { readonly index: number; readonly isIdUsable: boolean },
  scrub: Scrub,
): string {
  const shown = cleanText(JSON.stringify(item), MAX_ITEM_LENGTH, scrub);
  return `item ${index} has no usable ${isIdUsable ? 'status' : 'id'}: ${shown}`;
}

/** Returns the start of an untrusted text, scrubbed, on one line and in quotes. */
function quote(text: string, max: number, scrub: Scrub): string {
  // White space is joined after the scrub, because a key may contain spaces.
  const clean = cleanText(text, 2 * max, scrub)
    .replaceAll(/\s+/g, ' ')
    .trim();
  return JSON.stringify(cutCodePoints(clean, max));
}

import { maxHeaderSize } from 'node:http';
import { errors } from 'undici';
import { ApiError, type ApiFailureReason } from '../monitor/errors.ts';
import { isObject } from './json.ts';
import { cleanText, cutCodePoints, type Scrub } from './secrets.ts';

/** Lengths in code points of what an error quotes. */
const MAX_MESSAGE_LENGTH = 300;
const MAX_BEGINNING_LENGTH = 200;
const MAX_TYPE_LENGTH = 100;
const MAX_NAME_LENGTH = 64;
const MAX_VALUE_LENGTH = 100;
/** Names of fields that an error lists. */
const MAX_NAMES = 10;

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
 * Returns what came in place of a usable body: its content type, its kind and its beginning.
 * @param body its first bytes, or all of them
 */
export function describeUnusable(
  body: Buffer,
  { type, wanted }: { readonly type: string; readonly wanted: 'array' | 'object' },
  scrub: Scrub,
): string {
  // Scrubbed whole: a part of it could be a part of a key.
  const text = scrub(decode(body));
  const kind = isUtf16(body) ? 'UTF-16, and must be UTF-8' : kindOf(text, wanted, scrub);
  const parts = [
    ...(kind === undefined ? [] : [`it is ${kind}`]),
    type === ''
      ? 'it has no content type'
      : `its content type is ${quote(type, MAX_TYPE_LENGTH, scrub)}`,
    ...(text === '' ? [] : [`it begins ${quote(text, MAX_BEGINNING_LENGTH, scrub)}`]),
  ];
  return parts.join('; ');
}

/** Says what a body is in place of JSON of the wanted type; undefined if it begins like that. */
function kindOf(text: string, wanted: 'array' | 'object', scrub: Scrub): string | undefined {
  const body = text.trim();
  const [first = ''] = body;
  if (first === (wanted === 'array' ? '[' : '{')) return undefined;
  if (first === '') return 'empty';
  if (first === '<') return 'HTML or XML, such as a page to log in';
  if (first === '[') return 'an array';
  if (first === '"') return 'a text';
  if (/^(?:null|true|false|-?\d+)\b/.test(body)) return cleanText(body, MAX_NAME_LENGTH, scrub);
  if (first !== '{') return 'no JSON, or has something before it';
  if (/^\{.*\}\r?\n\s*\{/.test(body)) return 'an object on each line (NDJSON)';
  const list = /"([^"\\]*)"\s*:\s*\[/.exec(body)?.[1];
  return list === undefined
    ? 'an object'
    : `an object with an array in the field ${quote(list, MAX_NAME_LENGTH, scrub)}`;
}

function isUtf16(body: Buffer): boolean {
  return /^(?:\xff\xfe|\xfe\xff|[^\0]\0|\0[^\0])/.test(body.toString('latin1', 0, 2));
}

/** Decodes the beginning of a body, in UTF-16 too, as far as it is text. */
function decode(body: Buffer): string {
  if (!isUtf16(body)) return body.toString('utf8').replace(/^\ufeff/, '');
  const isBigEndian = body[0] === 0 || body[0] === 0xfe;
  return new TextDecoder(isBigEndian ? 'utf-16be' : 'utf-16le').decode(body);
}

/** Says why an item of a listing cannot be used. */
export function describeItem(
  item: unknown,
  { index, isIdUsable }: { readonly index: number; readonly isIdUsable: boolean },
  scrub: Scrub,
): string {
  if (!isObject(item) || Array.isArray(item)) {
    return `item ${index} is ${shown(item, scrub)}, not an object`;
  }
  const field = isIdUsable ? 'status' : 'id';
  if (Object.hasOwn(item, field)) {
    const rule = field === 'id' ? 'a text of 1 to 512 characters without a key' : 'a text';
    return `the ${field} of item ${index} is ${shown(item[field], scrub)}, and must be ${rule}`;
  }
  const names = Object.keys(item).slice(0, MAX_NAMES);
  const list = names.map((name) => quote(name, MAX_NAME_LENGTH, scrub)).join(', ');
  return `item ${index} has no field ${field}${list === '' ? '' : `, but ${list}`}`;
}

/** Returns a value of JSON as an error shows it. */
function shown(value: unknown, scrub: Scrub): string {
  if (typeof value === 'string') return `the text ${quote(value, MAX_VALUE_LENGTH, scrub)}`;
  if (typeof value === 'number')
    return `the number ${cleanText(String(value), MAX_VALUE_LENGTH, scrub)}`;
  if (Array.isArray(value)) return 'an array';
  return isObject(value) ? 'an object' : String(value);
}

/** Returns the start of an untrusted text, scrubbed, on one line and in quotes. */
function quote(text: string, max: number, scrub: Scrub): string {
  // White space is joined after the scrub, because a key may contain spaces.
  const clean = cleanText(text, 2 * max, scrub)
    .replaceAll(/\s+/g, ' ')
    .trim();
  return JSON.stringify(cutCodePoints(clean, max));
}

import type { IncomingMessage } from 'node:http';
import { type Host, parseHost } from './host.ts';
import { PATHS } from '../paths.ts';
import { RequestError } from './error.ts';

/** The target of a request, parsed once. Logins, limits and routes use this value only. */
export interface RequestTarget {
  /**
   * Canonical path: absolute, without dot segments; each character that RFC 3986 does not allow in a path is
   * percent-encoded in upper case. Parsing it as a URL changes nothing.
   */
  readonly path: string;
  /** The query as sent, with its `?`; empty without a query. */
  readonly search: string;
  readonly route: Route;
  /** Undefined for HTTP/1.0 without `Host`. */
  readonly host: Host | undefined;
}

/** Class of a path. Probes, and nothing else, need neither login nor client certificate; each other class has its own limit. */
export type Route = 'probe' | 'metrics' | 'events' | 'other';

const ROUTES: ReadonlyMap<string, Route> = new Map([
  [PATHS.healthy, 'probe'],
  [PATHS.ready, 'probe'],
  [PATHS.metrics, 'metrics'],
  [PATHS.events, 'events'],
]);

/** Headers that may occur once only: with two values, two readers of the request could use different ones. */
const GIVEN_ONCE = ['host', 'authorization'];

/**
 * Reads the request target and `Host` of a request.
 * @throws {RequestError} if they are malformed or ambiguous
 */
export function readTarget(
  request: Pick<IncomingMessage, 'url' | 'httpVersion' | 'rawHeaders'>,
): RequestTarget {
  const { url = '', httpVersion, rawHeaders } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    throw new RequestError(400, 'only HTTP/1.1 and HTTP/1.0 are supported');
  }
  for (const name of GIVEN_ONCE) {
    if (valuesOf(name, rawHeaders).length > 1) {
      throw new RequestError(400, `${name} is given more than once`);
    }
  }
  const named = readHost(valuesOf('host', rawHeaders)[0], httpVersion);
  const { authority, path, search } = split(url);
  const host = authority === undefined ? named : hostOf(authority, 'the host of the address');
  const canonical = canonicalPath(path);
  return { path: canonical, search, route: ROUTES.get(canonical) ?? 'other', host };
}

/**
 * Returns all values of a header. `headersDistinct` has them, too, but before Node 24.14.1 it throws if a client sends a
 * header named `__proto__`.
 */
function valuesOf(name: string, rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name,
  );
}

function readHost(text: string | undefined, httpVersion: string): Host | undefined {
  if (text !== undefined) return hostOf(text, 'Host');
  if (httpVersion === '1.0') return undefined;
  throw new RequestError(400, 'the Host header is missing');
}

function hostOf(text: string, what: string): Host {
  const host = parseHost(text);
  if (host === undefined) {
    throw new RequestError(
      400,
      `${what} must be a host name or an IP address, with or without a port`,
    );
  }
  return host;
}

/** Splits a target in origin form (`/path?query`) or in absolute form (`http://host/path?query`). */
function split(url: string) {
  // Clients do not send fragments.
  if (!/^[!"$-~]*$/.test(url)) {
    throw new RequestError(400, 'the address must be printable ASCII without a fragment');
  }
  const [origin = '', authority] = /^https?:\/\/([^/?]*)/i.exec(url) ?? [];
  const [path = ''] = /^[^?]*/.exec(url.slice(origin.length)) ?? [];
  if (authority === undefined && !path.startsWith('/')) {
    throw new RequestError(400, 'the address must be a path, or begin with http:// or https://');
  }
  return { authority, path: path || '/', search: url.slice(origin.length + path.length) };
}

/** Returns the canonical path. A `%` without two hexadecimal digits stands for itself: browsers send it as it was typed. */
function canonicalPath(path: string): string {
  const canonical = path.replace(
    /%([\da-f]{2})?|[^\w.~!$&'()*+,;=:@/-]/gi,
    (text, hex?: string) => {
      const character = hex === undefined ? text : String.fromCodePoint(Number.parseInt(hex, 16));
      return hex !== undefined && /[\w.~-]/.test(character) ? character : escape(character);
    },
  );
  if (path.includes('\\')) throw new RequestError(400, 'the path must have no backslash');
  if (/\/\.{1,2}(?:\/|$)/.test(canonical)) {
    throw new RequestError(400, 'the path must have no segment . or ..');
  }
  return canonical;
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `%${code.toString(16).toUpperCase().padStart(2, '0')}`;
}

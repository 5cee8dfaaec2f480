import type { IncomingHttpHeaders } from 'node:http';
import { type Host, parseHost } from '../request/host.ts';
import type { RequestTarget } from '../request/target.ts';

/** Names that public DNS cannot hold: a page elsewhere cannot make them lead to this server. */
const PRIVATE_NAME = /^[^.]+$|\.(?:localhost|svc|local|internal|home\.arpa)$/;
/** The same without those that a neighbour on the network can answer for, by multicast DNS. */
const LOCAL_NAME = /^[^.]+$|\.localhost$/;
const LOOPBACK = /^(?:127\.|::1$|localhost$)/;

/** Names under which a server is asked for. */
export interface ServerNames {
  /** Host of `web.listen`, in lower case. */
  readonly listen: string;
  /** `web.allowed_hosts`, in lower case. */
  readonly allowed: readonly string[];
}

/**
 * Whether a request that shows no login may be answered. A page that rebinds its own name to this server's address would
 * otherwise read this server through the browser of a visitor of that page.
 */
export function isForThisServer(
  { host, route }: Pick<RequestTarget, 'host' | 'route'>,
  headers: IncomingHttpHeaders,
  { listen, allowed }: ServerNames,
): boolean {
  if (route === 'probe' || host === undefined || host.isAddress) return true;
  if (host.name === listen || allowed.includes(host.name)) return true;
  const usual = LOOPBACK.test(listen) ? LOCAL_NAME : PRIVATE_NAME;
  if (usual.test(host.name)) return true;
  return route === 'metrics' && !canBeFromPage(headers);
}

/**
 * Whether a script in a browser can have sent these headers. Browsers add `Accept-Language` to what scripts send, and an
 * `Accept-Encoding` with deflate, which scripts cannot change but by asking for a `Range`. Prometheus sends gzip alone.
 */
function canBeFromPage(headers: IncomingHttpHeaders): boolean {
  return (
    headers['accept-language'] !== undefined ||
    headers.range !== undefined ||
    headers['sec-fetch-site'] !== undefined ||
    !/^(?:gzip|identity)?$/i.test(headers['accept-encoding'] ?? '')
  );
}

/**
 * Whether a browser says that a page of another site sends the request. Clients that are no browsers say nothing.
 * @param names that this server has behind a proxy that changes `Host`
 */
export function isCrossSite(
  headers: IncomingHttpHeaders,
  host: Host | undefined,
  names: readonly string[],
): boolean {
  const { 'sec-fetch-site': site = 'none', origin } = headers;
  if (site !== 'none' && site !== 'same-origin') return true;
  return origin !== undefined && !isOwnOrigin(origin, host, names);
}

function isOwnOrigin(origin: string, host: Host | undefined, names: readonly string[]): boolean {
  const [, scheme = '', authority = ''] = /^(https?):\/\/(.*)$/i.exec(origin) ?? [];
  const from = parseHost(authority);
  if (from === undefined) return false;
  if (names.includes(from.name)) return true;
  const usual = scheme.toLowerCase() === 'https' ? 443 : 80;
  return from.name === host?.name && (from.port ?? usual) === (host.port ?? usual);
}

import type { IncomingHttpHeaders } from 'node:http';
import { type Host, parseHost } from '../request/host.ts';
import type { RequestTarget } from '../request/target.ts';

/** Names that do not exist in public DNS, so that a foreign page cannot resolve them to this server. */
const PRIVATE_NAME = /^[^.]+$|\.(?:localhost|svc|local|internal|home\.arpa)$/;
/** The same without names that another machine on the network can claim by multicast DNS. */
const LOCAL_NAME = /^[^.]+$|\.localhost$/;
const LOOPBACK = /^(?:127\.|::1$|localhost$)/;

/** Names of a server. */
export interface ServerNames {
  /** Host of `web.listen`, in lower case. */
  readonly listen: string;
  /** `web.allowed_hosts`, in lower case. */
  readonly allowed: readonly string[];
}

/**
 * Whether a request without a login may be answered. Otherwise a page that rebinds its own name to this server's address
 * could read this server through the browser of a visitor.
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
 * Whether a script in a browser can have sent these headers. Browsers add `Accept-Language` to the requests of scripts, and
 * an `Accept-Encoding` with deflate, which a script can change only by a `Range`. Prometheus sends gzip alone.
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
 * Whether the headers of a browser show that a page of another site sends the request. Other clients do not send these
 * headers.
 * @param names names of this server behind a proxy that changes `Host`
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

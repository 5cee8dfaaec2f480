import { METHODS } from 'node:http';
import { isIPv4 } from 'node:net';
import type { ServerKind } from './daemons.ts';

/** A request as it is sent, with facts that its generator has. */
export interface Sent {
  readonly method: string;
  readonly target: string;
  /** `1.1` or something else. */
  readonly version: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Whether it has the right password. */
  readonly isLoggedIn: boolean;
  /** Whether Node's parser must refuse it for a reason other than its target. */
  readonly isBroken: boolean;
}

/** The required answer. */
export interface Expected {
  /** Undefined if it is admitted: then any but those of {@link REFUSALS}. */
  readonly statuses: readonly number[] | undefined;
  /** Whether it may show what is protected. */
  readonly mayShow: boolean;
  /** Whether Node's parser may refuse it and close the connection before other requests on it are answered. */
  readonly mayEndConnection: boolean;
}

/** Statuses of requests that are not admitted. */
export const REFUSALS: readonly number[] = [401, 403, 417, 421];

type Judgement = Omit<Expected, 'mayEndConnection'>;

const PROBES: ReadonlySet<string> = new Set(['-/healthy', '-/ready']);

/** Derives the required answer of a server from the request alone, without code of the product. */
export function expect(sent: Sent, server: ServerKind): Expected {
  const target = targetOf(sent);
  const isBroken =
    sent.isBroken ||
    sent.method === 'CONNECT' ||
    !METHODS.includes(sent.method) ||
    !/^(?:[/*]|[a-z]+:\/\/)[!-~]*$/i.test(target) ||
    (sent.version === '1.1' && sent.headers.every(([name]) => name.toLowerCase() !== 'host'));
  if (isBroken) return { ...refused(400, 413, 431), mayEndConnection: true };
  const judgement = judge(sent, server);
  // Node's parser reads the host of a target more strictly than URL.
  const [, authority = 'x'] = /^[a-z]+:\/\/([^/?]*)/i.exec(target) ?? [];
  if (isPlain(authority)) return { ...judgement, mayEndConnection: false };
  return { ...orBroken(judgement), mayEndConnection: true };
}

/** Spaces around the target belong to the request line. */
function targetOf({ target }: Sent): string {
  return target.replaceAll(/^ +| +$/g, '');
}

/** Whether every reader of a host reads the same. */
function isPlain(host: string): boolean {
  return /^(?:[\w.-]+|\[[\da-f:]+\])(?::\d+)?$/i.test(host);
}

function judge(sent: Sent, server: ServerKind): Judgement {
  const header = (name: string) =>
    sent.headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value.trim());
  const [expectation] = header('expect');
  if (sent.version === '1.1' && expectation !== undefined && expectation !== '100-continue') {
    return refused(417);
  }
  const host = header('host')[0] || 'localhost';
  const url = urlOf(targetOf(sent), host);
  if (url === null) return refused(400);
  const judgement = judgeUrl(sent, url, server, header);
  // Another Host may be refused, or be read as URL reads it.
  return isPlain(host) ? judgement : orBroken(judgement);
}

/** Returns the URL of a request as the standard of URLs reads it: one URL decides login and route. */
function urlOf(target: string, host: string): URL | null {
  if (/^[^?]*\\/.test(target)) return null;
  if (/^https?:\/\//.test(target)) return URL.parse(target);
  return target.startsWith('/') || !isPlain(host) ? URL.parse(`http://${host}${target}`) : null;
}

function judgeUrl(
  sent: Sent,
  url: URL,
  server: ServerKind,
  header: (name: string) => readonly string[],
): Judgement {
  const path = pathOf(url);
  const isRead = sent.method === 'GET' || sent.method === 'HEAD';
  if (isRead && PROBES.has(path)) return refused(200);
  // 503 if too many wrong passwords wait.
  const isLoggedIn = sent.isLoggedIn && header('authorization').length === 1;
  if (server === 'login' && !isLoggedIn) return refused(401, 503);
  if (server === 'open' && !mayBeNamed(url.hostname.replace(/\.$/, ''))) {
    const isBrowser =
      ['accept-language', 'sec-fetch-site', 'range'].some((name) => header(name).length > 0) ||
      !['', 'gzip', 'identity'].includes(header('accept-encoding')[0] ?? '');
    if (path !== 'metrics' || isBrowser) return refused(421);
  }
  const isChange = !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(sent.method);
  if (isChange && comesFromElsewhere(header)) return refused(403);
  return { statuses: undefined, mayShow: true };
}

function refused(...statuses: readonly number[]): Judgement {
  return { statuses, mayShow: false };
}

/** Returns the same, for a request that may be taken for a broken one, too. */
function orBroken({ statuses, mayShow }: Judgement): Judgement {
  return { statuses: statuses && [...statuses, 400], mayShow };
}

/**
 * Returns the path without its first slash, percent-decoded, as bytes; `(none)` if a segment contains a slash, since no route has
 * one.
 */
function pathOf({ pathname }: URL): string {
  const segments = pathname.split('/').slice(1).map(decode);
  return segments.some((segment) => segment.includes('/')) ? '(none)' : segments.join('/');
}

/** Decodes a segment to bytes (latin1); a percent sign without two digits stands for itself. */
function decode(segment: string): string {
  return segment.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Whether a server on the loopback interface accepts this name without a login. */
function mayBeNamed(name: string): boolean {
  return /^\[|^[^.]+$|\.localhost$/.test(name) || isIPv4(name);
}

function comesFromElsewhere(header: (name: string) => readonly string[]): boolean {
  const [site = 'none'] = header('sec-fetch-site');
  if (site !== 'none' && site !== 'same-origin') return true;
  const [origin] = header('origin');
  if (origin === undefined) return false;
  // Two hosts are one that no page has.
  const own = URL.parse(origin.replace(/\/\/.*/, `//${header('host').join(', ')}`));
  return !origin.startsWith('http') || own === null || own.host !== URL.parse(origin)?.host;
}

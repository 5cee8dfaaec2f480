import { METHODS } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { PROJECTS, PROTECTED, type ServerKind } from './daemons.ts';

/** A request as it is sent, with facts that its generator has. */
export interface Sent {
  readonly method: string;
  readonly target: string;
  /** `1.1` or something else. */
  readonly version: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Whether it has the right password, or a connection with the right certificate. */
  readonly isLoggedIn: boolean;
  /** Whether Node's parser must refuse it for a reason other than its target. */
  readonly isBroken: boolean;
}

/** The required answer. */
export interface Expected {
  readonly statuses: readonly number[];
  /** Text in the body of an answer with the first status; undefined if the body must have no content of the interface. */
  readonly shows: string | undefined;
  /** Name of the route, for the figures. */
  readonly route: string;
  /** Whether it is admitted; then only a limit may refuse it. */
  readonly isAdmitted: boolean;
  /** Whether Node's parser may refuse it and close the connection before other requests on it are answered. */
  readonly mayEndConnection: boolean;
}

type Judgement = Omit<Expected, 'isAdmitted' | 'mayEndConnection'> & { readonly isAdmitted?: true };

const UNRESERVED = new Set('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~');

/** Derives the required answer of a server from the request alone, without code of the product. */
export function expect(sent: Sent, server: ServerKind, assets: readonly string[]): Expected {
  const shape = shapeOf(sent.target);
  const isOdd = sent.isBroken || sent.method === 'CONNECT' || !METHODS.includes(sent.method);
  const mayEndConnection = isOdd || typeof shape !== 'object';
  return { isAdmitted: false, ...judge(sent, shape, server, assets), mayEndConnection };
}

function judge(
  sent: Sent,
  shape: ReturnType<typeof shapeOf>,
  server: ServerKind,
  assets: readonly string[],
): Judgement {
  const header = (name: string) =>
    sent.headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value.trim());
  if (sent.method === 'CONNECT' && !sent.isBroken) return refused('CONNECT', 400);
  if (sent.isBroken || !METHODS.includes(sent.method)) return refused('broken', 400, 413, 431);
  // The parser refuses the target before Node reads the headers.
  if (shape === 'unparsable') return refused('bad target', 400);
  const [expectation] = header('expect');
  if (sent.version === '1.1' && expectation !== undefined && expectation !== '100-continue') {
    return shape === undefined ? refused('bad target', 400, 417) : refused('expectation', 417);
  }
  if (sent.version !== '1.1' && sent.version !== '1.0') return refused('bad version', 400);
  const hosts = header('host');
  const isNamed = hosts.length === 1 && hostOf(hosts[0] ?? '') !== undefined;
  if (!isNamed && (hosts.length > 0 || sent.version === '1.1')) return refused('bad Host', 400);
  if (header('authorization').length > 1) return refused('two logins', 400);
  if (shape === undefined) return refused('bad target', 400);
  const host = hostOf(shape.authority ?? hosts[0] ?? '');

  const isChange = !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(sent.method);
  if (isChange && comesFromElsewhere(header, host)) return refused('cross-site', 403);
  const { path } = shape;
  if (path === '-/healthy' || path === '-/ready') {
    return sent.method === 'GET' || sent.method === 'HEAD'
      ? { statuses: [200], shows: 'evalwatch is', route: 'probe' }
      : refused('probe', 405);
  }
  if (server !== 'open' && !sent.isLoggedIn) {
    // 503 if too many wrong passwords wait.
    return server === 'login' ? refused('no login', 401, 503) : refused('no certificate', 403);
  }
  if (server === 'open' && host !== undefined && !mayBeNamed(host.name)) {
    const isBrowser =
      ['accept-language', 'sec-fetch-site', 'range'].some((name) => header(name).length > 0) ||
      !isPlain(header('accept-encoding'));
    if (path !== 'metrics' || isBrowser) return refused('foreign name', 421);
  }
  const isForm = header('accept').some((value) => value.includes('text/html'));
  return { ...routed(sent.method, shape, assets, isForm), isAdmitted: true };
}

function refused(route: string, ...statuses: readonly number[]): Judgement {
  return { statuses, shows: undefined, route };
}

interface Shape {
  readonly authority: string | undefined;
  /** Segments of the path, without the empty one before the first slash; percent-decoded, as bytes. */
  readonly segments: readonly string[];
  /** The segments joined by slashes; `(none)` if a segment contains a slash, since no route has one. */
  readonly path: string;
  readonly query: string | undefined;
}

/** Returns the parts of a target; undefined if it is ambiguous or malformed. */
function shapeOf(written: string): Shape | 'unparsable' | undefined {
  // Spaces around the target belong to the request line.
  const target = written.replaceAll(/^ +| +$/g, '');
  if (Array.from(target).some((character) => character < '!' || character > '~'))
    return 'unparsable';
  if (!/^(?:[/*]|[a-z]+:\/\/)/i.test(target)) return 'unparsable';
  if (target.includes('#')) return undefined;
  const mark = target.indexOf('?');
  let path = mark === -1 ? target : target.slice(0, mark);
  let authority: string | undefined;
  const lower = path.toLowerCase();
  for (const scheme of ['http://', 'https://']) {
    if (!lower.startsWith(scheme)) continue;
    const slash = path.indexOf('/', scheme.length);
    authority = path.slice(scheme.length, slash === -1 ? undefined : slash);
    path = slash === -1 ? '/' : path.slice(slash);
  }
  if (!path.startsWith('/') || path.includes('\\')) return undefined;
  if (authority !== undefined && hostOf(authority) === undefined) return undefined;
  const segments = path.split('/').slice(1).map(decode);
  if (segments.some((segment) => segment === '.' || segment === '..')) return undefined;
  const hasNoSlash = segments.every((segment) => !segment.includes('/'));
  const joined = hasNoSlash ? segments.join('/') : '(none)';
  return {
    authority,
    segments,
    path: joined,
    query: mark === -1 ? undefined : target.slice(mark + 1),
  };
}

/** Decodes a segment to bytes (latin1); a percent sign without two digits stands for itself. */
function decode(segment: string): string {
  let bytes = '';
  for (let at = 0; at < segment.length; at += 1) {
    const code = segment[at] === '%' ? hexOf(segment.slice(at + 1, at + 3)) : undefined;
    bytes += code === undefined ? segment[at] : String.fromCharCode(code);
    if (code !== undefined) at += 2;
  }
  return bytes;
}

function hexOf(digits: string): number | undefined {
  const isHex =
    digits.length === 2 &&
    Array.from(digits).every((digit) => '0123456789abcdefABCDEF'.includes(digit));
  return isHex ? Number(`0x${digits}`) : undefined;
}

function hostOf(text: string): { readonly name: string; readonly port: string } | undefined {
  const end = text.startsWith('[') ? text.indexOf(']') + 1 : text.indexOf(':');
  const name = end === -1 ? text : text.slice(0, end);
  const rest = end === -1 ? '' : text.slice(end);
  if (rest !== '' && !rest.startsWith(':')) return undefined;
  const port = rest.slice(1);
  if (port.length > 5 || Array.from(port).some((digit) => digit < '0' || digit > '9'))
    return undefined;
  if (Number(port) > 65_535) return undefined;
  const isName =
    name.length > 0 &&
    name.length <= 254 &&
    name !== '.' &&
    Array.from(name).every((each) => UNRESERVED.has(each) && each !== '~');
  if (!isName && !(name.startsWith('[') && isIPv6(name.slice(1, -1)))) return undefined;
  const lower = name.toLowerCase();
  return { name: lower.endsWith('.') ? lower.slice(0, -1) : lower, port };
}

/** Whether a server on the loopback interface accepts this name without a login. */
function mayBeNamed(name: string): boolean {
  if (name.startsWith('[') || isIPv4(name) || !name.includes('.')) return true;
  return name.endsWith('.localhost');
}

function isPlain([encoding = '']: readonly string[]): boolean {
  return ['', 'gzip', 'identity'].includes(encoding);
}

function comesFromElsewhere(
  header: (name: string) => readonly string[],
  host: { readonly name: string; readonly port: string } | undefined,
): boolean {
  const [site] = header('sec-fetch-site');
  if (site !== undefined && site !== 'none' && site !== 'same-origin') return true;
  const [origin] = header('origin');
  if (origin === undefined) return false;
  const usual = origin.startsWith('https:') ? '443' : '80';
  const from = hostOf(origin.slice(origin.indexOf('//') + 2));
  return (
    !origin.startsWith('http') ||
    host === undefined ||
    from?.name !== host.name ||
    Number(from.port || usual) !== Number(host.port || usual)
  );
}

const API = ['projects', 'prompts', 'transitions', 'failures', 'causes'];

/** What the answer to a `GET` of a path shows, without and with a query. */
const PAGES = new Map<string, readonly [shows: string, selected: string]>([
  ['', ['href="./assets/', 'href="./assets/']],
  ['metrics', [`project="${PROTECTED}"`, PROTECTED]],
  ...API.map((name) => [`api/v1/${name}`, [PROTECTED, '"data":[']] as const),
  ['api/v1/openapi.json', ['"openapi":', '"openapi":']],
  ['api/v1/events', ['retry: ', 'retry: ']],
]);

function routed(
  method: string,
  { segments, path, query }: Shape,
  assets: readonly string[],
  isForm: boolean,
): Judgement {
  const isRead = method === 'GET' || method === 'HEAD';
  const page = PAGES.get(path);
  if (page !== undefined) {
    const [shows, selected] = page;
    if (!isRead) return refused(path, 405);
    // A parameter of the API may be wrong. Others take none, or any.
    const statuses = query && path.startsWith('api/') ? [200, 400, 404] : [200];
    return { statuses, shows: query ? selected : shows, route: path };
  }
  if (path === '-/poll') {
    if (method !== 'POST') return refused(path, 405);
    // 409 while another connection's request polls.
    const statuses = query ? [400, 404, 409] : [409];
    return isForm
      ? { statuses: [303, ...statuses], shows: '', route: path }
      : { statuses: [200, 202, ...statuses], shows: '"polled":[', route: path };
  }
  if (path === '-/reload') {
    return method === 'POST'
      ? { statuses: [200], shows: '"ok":true', route: path }
      : refused(path, 405);
  }
  if (assets.includes(`/${path}`)) {
    return isRead ? { statuses: [200], shows: '', route: 'assets' } : refused('assets', 405);
  }
  const [first, project = '', ...more] = segments;
  if (first === 'projects' && project !== '' && more.length === 0) {
    if (!isRead) return refused('projects', 405);
    const isKnown = PROJECTS.includes(Buffer.from(project, 'latin1').toString());
    return { statuses: [isKnown ? 200 : 404], shows: 'href="../assets/', route: 'projects' };
  }
  return refused('nothing', 404);
}

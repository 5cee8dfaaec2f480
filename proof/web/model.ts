import { METHODS } from 'node:http';
import { isIPv4 } from 'node:net';
import { PROJECTS, PROMPT, PROTECTED, type ServerKind } from './daemons.ts';

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

const PROBES: ReadonlySet<string> = new Set(['-/healthy', '-/ready']);

/** Derives the required answer of a server from the request alone, without code of the product. */
export function expect(sent: Sent, server: ServerKind, assets: readonly string[]): Expected {
  const target = targetOf(sent);
  const isBroken =
    sent.isBroken ||
    sent.method === 'CONNECT' ||
    !METHODS.includes(sent.method) ||
    !/^(?:[/*]|[a-z]+:\/\/)[!-~]*$/i.test(target) ||
    (sent.version === '1.1' && sent.headers.every(([name]) => name.toLowerCase() !== 'host'));
  if (isBroken) {
    return { ...refused('broken', 400, 413, 431), isAdmitted: false, mayEndConnection: true };
  }
  const judgement = judge(sent, server, assets);
  // Node's parser reads the host of a target more strictly than URL.
  const [, authority = 'x'] = /^[a-z]+:\/\/([^/?]*)/i.exec(target) ?? [];
  if (isPlain(authority)) return { isAdmitted: false, ...judgement, mayEndConnection: false };
  const statuses = [...judgement.statuses, 400];
  return { isAdmitted: false, ...judgement, statuses, mayEndConnection: true };
}

/** Spaces around the target belong to the request line. */
function targetOf({ target }: Sent): string {
  return target.replaceAll(/^ +| +$/g, '');
}

/** Whether every reader of a host reads the same. */
function isPlain(host: string): boolean {
  return /^(?:[\w.-]+|\[[\da-f:]+\])(?::\d+)?$/i.test(host);
}

function judge(sent: Sent, server: ServerKind, assets: readonly string[]): Judgement {
  const header = (name: string) =>
    sent.headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value.trim());
  const [expectation] = header('expect');
  if (sent.version === '1.1' && expectation !== undefined && expectation !== '100-continue') {
    return refused('expectation', 417);
  }
  const host = header('host')[0] || 'localhost';
  const url = urlOf(targetOf(sent), host);
  if (url === null) return refused('bad target', 400);
  const judgement = judgeUrl(sent, url, server, assets, header);
  // Another Host may be refused, or be read as URL reads it.
  return isPlain(host) ? judgement : { ...judgement, statuses: [...judgement.statuses, 400] };
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
  assets: readonly string[],
  header: (name: string) => readonly string[],
): Judgement {
  const shape = shapeOf(url);
  const isRead = sent.method === 'GET' || sent.method === 'HEAD';
  if (isRead && PROBES.has(shape.path)) {
    return { statuses: [200], shows: 'evalwatch is', route: 'probe' };
  }
  if (server === 'certificate' && !sent.isLoggedIn) return refused('no certificate', 403);
  // 503 if too many wrong passwords wait.
  const isLoggedIn = sent.isLoggedIn && header('authorization').length === 1;
  if (server === 'login' && !isLoggedIn) return refused('no login', 401, 503);
  if (server === 'open' && !mayBeNamed(url.hostname.replace(/\.$/, ''))) {
    const isBrowser =
      ['accept-language', 'sec-fetch-site', 'range'].some((name) => header(name).length > 0) ||
      !['', 'gzip', 'identity'].includes(header('accept-encoding')[0] ?? '');
    if (shape.path !== 'metrics' || isBrowser) return refused('foreign name', 421);
  }
  const isChange = !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(sent.method);
  if (isChange && comesFromElsewhere(header)) return refused('cross-site', 403);
  const isForm = header('accept').some((value) => value.includes('text/html'));
  return { ...routed(sent.method, shape, assets, isForm), isAdmitted: true };
}

function refused(route: string, ...statuses: readonly number[]): Judgement {
  return { statuses, shows: undefined, route };
}

interface Shape {
  /** Segments of the path, without the empty one before the first slash; percent-decoded, as bytes. */
  readonly segments: readonly string[];
  /** The segments joined by slashes; `(none)` if a segment contains a slash, since no route has one. */
  readonly path: string;
  readonly query: string;
  /** Whether a percent sign without two digits stands in the path. Hono decodes such a path twice. */
  readonly isMalformed: boolean;
}

function shapeOf({ pathname, search }: URL): Shape {
  const segments = pathname.split('/').slice(1).map(decode);
  const hasNoSlash = segments.every((segment) => !segment.includes('/'));
  const isMalformed = /%(?![\da-f]{2})/i.test(pathname);
  const path = hasNoSlash ? segments.join('/') : '(none)';
  return { segments, path, query: search.slice(1), isMalformed };
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

const API = ['projects', 'prompts', 'transitions', 'failures', 'causes'];

/** What the answer to a `GET` of a path shows, without and with a query. */
const PAGES = new Map<string, readonly [shows: string, selected: string]>([
  ['', ['href="./assets/', 'href="./assets/']],
  ['metrics', [`project="${PROTECTED}"`, PROTECTED]],
  ...API.map((name) => [`api/v1/${name}`, [PROTECTED, '"data":[']] as const),
  ['api/v1/openapi.json', ['"openapi":', '"openapi":']],
  ['api/v1/events', ['retry: ', 'retry: ']],
]);

/** Number of the ids that follow these paths to one row. */
const IDS_IN_ROWS = new Map([
  ['api/v1/projects', 1],
  ['api/v1/prompts', 2],
]);

function isProject(segment = ''): boolean {
  return PROJECTS.includes(Buffer.from(segment, 'latin1').toString());
}

function routed(
  method: string,
  { segments, path, query, isMalformed }: Shape,
  assets: readonly string[],
  isForm: boolean,
): Judgement {
  const isRead = method === 'GET' || method === 'HEAD';
  if (PROBES.has(path)) return refused('probe', 405);
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
  const ids = segments.slice(3);
  if (IDS_IN_ROWS.get(segments.slice(0, 3).join('/')) === ids.length && !ids.includes('')) {
    if (!isRead) return refused('row', 405);
    const shown = { shows: '"data":{', route: 'row' };
    if (query || isMalformed) return { statuses: [200, 400, 404], ...shown };
    const [id = '', prompt = PROMPT] = ids;
    if (isProject(id) && prompt === PROMPT) return { statuses: [200], ...shown };
    // It names the project that is unknown.
    const isNamed = !isProject(id) && id.includes(PROTECTED);
    return isNamed ? { ...shown, statuses: [404], shows: PROTECTED } : refused('row', 404);
  }
  const [first, project = '', part, name, ...more] = segments;
  const isWhole = part === undefined;
  const isPart = (part === 'experiments' || part === 'prompts') && name && more.length === 0;
  if (first === 'projects' && project !== '' && (isWhole || isPart)) {
    if (!isRead) return refused('projects', 405);
    const isKnown = isProject(project) && (isWhole || (part === 'prompts' && name === PROMPT));
    const statuses = isMalformed ? [404, 200] : [isKnown ? 200 : 404];
    return { statuses, shows: `href="${isWhole ? '../' : '../../../'}assets/`, route: 'projects' };
  }
  return refused('nothing', 404);
}

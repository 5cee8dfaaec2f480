import type { Sent } from './model.ts';
import { PASSWORD, PROJECTS, PROMPT, USER } from './daemons.ts';

// Parts of random requests. What occurs twice is twice as likely.

const words = (text: string) => text.split(' ');
const split = (text: string) => text.split('|');
const METHODS = words('GET GET GET GET GET GET HEAD POST POST PUT DELETE');
const ODD_METHODS = words('OPTIONS TRACE PATCH QUERY PROPFIND SEARCH PURGE CONNECT get Post FOO');
const PATHS = words(
  '/ /metrics /-/healthy /-/ready /-/reload /-/poll /api/v1/events /api/v1/projects /api/v1/prompts ' +
    '/api/v1/transitions /api/v1/failures /api/v1/causes /api/v1/openapi.json',
);
const NEAR = words(
  '/-/ /- //metrics /metrics/ /-/health /-/healthy/ /METRICS /api/v1 /api/v1/ /api /projects /projects/ ' +
    '/projects/p/ /projects//p /assets/ /-/ready/../../metrics /favicon.ico *  metrics /metrics;a=b /:path /api/v1/*',
);
const SCRAPS = words(
  '%2e . .. %2E%2e / // %2f %5C \\ % %zz %00 %0a %25 ? # %3F %23 ; @ : " < | ^ [ x \t \0 \u007f \u00be \u00ff',
).concat(' ');
const QUERIES = words(
  ' a=b limit=1 limit=x project=p project=%C3%BC project=a%2Fb project=nobody x=/-/healthy /../metrics % \\ &&= ' +
    'project=p&project=p find=%3Cp%3E',
);
const GOOD_HOSTS = words(
  '127.0.0.1 127.0.0.1:10570 localhost evalwatch:10570 [::1]:1 EVALWATCH a_b-c.localhost. 10.1.2.3 x: a.b.localhost:80',
);
const PUBLIC_HOSTS = words(
  'evil.example evalwatch.example.com:10570 127.0.0.1.evil.example x.y:80 pi.local',
);
const BAD_HOSTS = words(
  ' : . 0/?aaaa 0/metrics# \u00be/metrics? \u00be/-/healthy? \u00be\\metrics? x/metrics x? x# a@b a:b@c ' +
    'x,y [::1 [x] [1.2.3.4] x:65536 x:y x:123456 %31 \u00e4 http://x *',
).concat('x y', 'x'.repeat(260));
const BROWSER = split('Accept-Language: en|Accept-Encoding: gzip, deflate|Accept-Encoding: gzip');
const ELSEWHERE = words('cross-site same-site same-origin none')
  .map((site) => `Sec-Fetch-Site: ${site}`)
  .concat(
    words('null http://evil.example http://localhost https://127.0.0.1:10570').map(
      (origin) => `Origin: ${origin}`,
    ),
  );
const OTHER = split(
  'X-Forwarded-Host: \u00be/metrics?|X-Original-URL: /-/healthy|X-HTTP-Method-Override: GET|Upgrade: h2c|' +
    'Forwarded: host=x;proto=https|Accept: text/html|Range: bytes=0-|Expect: 100-continue|Expect: more|' +
    'Last-Event-ID: t0.f0|Cookie: a=b|TE: trailers|Content-Type: text/plain|__proto__: x|' +
    'Proxy-Authorization: Basic YTpi',
);
const basic = (login: string) => `Basic ${Buffer.from(login).toString('base64')}`;
const RIGHT = basic(`${USER}:${PASSWORD}`);
const LOGINS = {
  right: [RIGHT, RIGHT.replace('Basic', 'bASIC  ')],
  unread: split(
    `|Basic|Basic !|Bearer abc|Basic${RIGHT.slice(6)}|${basic(USER)}|Digest ${RIGHT}|x, ${RIGHT}`,
  ),
  wrong: [`${USER}:`, `${USER}:wrong`, `bob:${PASSWORD}`, `__proto__:${PASSWORD}`]
    .concat(`${USER}:${PASSWORD}\0`)
    .map(basic),
};
/** Header lines with which no request is acceptable. */
const BROKEN_LINES = split(
  'Content-Length: 1\r\nTransfer-Encoding: chunked|Content-Length: 1\r\nContent-Length: 2|Content-Length: -1|' +
    'Transfer-Encoding: chunked, chunked|no colon| folded: line|space : before|X: a\0b',
).concat(`X: ${'x'.repeat(20_000)}`);
/** Changes after which no request is acceptable. */
const BREAKS: readonly ((bytes: string) => string)[] = [
  ...BROKEN_LINES.map((line) => (bytes: string) => bytes.replace('\r\n', `\r\n${line}\r\n`)),
  ...['HTTP/1.9', 'HTTPS/1.1', 'more HTTP/1.1'].map(
    (version) => (bytes: string) => bytes.replace(/ HTTP\/\d\.\d\r\n/, ` ${version}\r\n`),
  ),
  (bytes) => `\u0016\u0003\u0001${bytes}`,
  (bytes) => bytes.slice(0, bytes.length - 3),
];

/** A request, as bytes (latin1) and as the model reads it. */
export interface Made extends Sent {
  readonly bytes: string;
}

interface Makings {
  readonly random: () => number;
  /** Whether it is the last request of its connection and asks to close it. */
  readonly isLast: boolean;
}

type Pick = <T>(list: readonly T[]) => T;

/** Returns a random request, usually almost valid. */
export function makeRequest({ random, isLast }: Makings): Made {
  const chance = (share: number) => random() < share;
  const pick: Pick = (list) => list[Math.floor(random() * list.length)] as (typeof list)[number];

  const method = chance(0.06) ? pick(ODD_METHODS) : pick(METHODS);
  const version = chance(0.1) ? pick(['1.0', '1.0', '1.0', '0.9', '2.0']) : '1.1';
  const target = makeTarget(pick, chance);
  const login = chance(0.5)
    ? pick(LOGINS.right)
    : chance(0.4)
      ? pick(chance(0.1) ? LOGINS.wrong : LOGINS.unread)
      : undefined;
  const logins = login === undefined ? [] : [login, ...(chance(0.02) ? [login] : [])];
  const headers = [
    ...makeHosts(pick, chance).map((host) => `${pick(['Host', 'host', 'HOST'])}: ${host}`),
    ...logins.map((value) => `${pick(['Authorization', 'authorization'])}: ${value}`),
    ...(chance(0.15) ? [pick(BROWSER)] : []),
    ...(chance(0.12) ? [pick(ELSEWHERE)] : []),
    ...(chance(0.1) ? [pick(OTHER)] : []),
  ];
  if (chance(0.3)) headers.reverse();
  if (isLast) headers.push('Connection: close');
  const body = makeBody(pick, chance, method);
  headers.push(...body.headers);
  const lines = [`${method} ${target} HTTP/${version}`, ...headers];
  const bytes = `${lines.join('\r\n')}\r\n\r\n${body.text}`;
  const isBroken = isLast && chance(0.03);
  return {
    method,
    target,
    version,
    headers: headers.map((line) => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1),
    ]),
    isLoggedIn: login !== undefined && LOGINS.right.includes(login),
    isBroken,
    bytes: isBroken ? pick(BREAKS)(lines.slice(0, 2).join('\r\n') + '\r\n\r\n') : bytes,
  };
}

function makeTarget(pick: Pick, chance: (share: number) => boolean): string {
  let path = chance(0.1) ? pick(NEAR) : pick(PATHS);
  if (chance(0.06)) {
    const id = encodeURIComponent(chance(0.8) ? pick(PROJECTS) : pick(SCRAPS));
    path = pick([
      `/projects/${id}`,
      `/projects/${id}/prompts/${PROMPT}`,
      `/projects/${id}/experiments/x`,
      `/api/v1/projects/${id}`,
      `/api/v1/prompts/${id}/${PROMPT}`,
    ]);
  }
  let target = path;
  if (chance(0.25))
    target = Array.from(target, (each) => (chance(0.3) ? escape(each, chance) : each)).join('');
  for (let more = chance(0.25) ? 1 : 0; more > 0; more = chance(0.3) ? 1 : 0) {
    const at = pick(Array.from({ length: target.length + 1 }, (_, index) => index));
    target = target.slice(0, at) + pick(SCRAPS) + target.slice(at);
  }
  if (chance(0.2)) target += `?${pick(QUERIES)}`;
  if (chance(0.1)) {
    const host = pick(pick([GOOD_HOSTS, PUBLIC_HOSTS, BAD_HOSTS]));
    target = `${pick(['http', 'https', 'HTTP', 'ftp', 'file'])}://${host}${target}`;
  }
  return target;
}

/** Percent-encodes any character, which no browser does. */
function escape(character: string, chance: (share: number) => boolean): string {
  const hex = character.charCodeAt(0).toString(16).padStart(2, '0');
  return `%${chance(0.5) ? hex : hex.toUpperCase()}`;
}

function makeHosts(pick: Pick, chance: (share: number) => boolean): readonly string[] {
  if (chance(0.04)) return [];
  const host = pick(chance(0.8) ? GOOD_HOSTS : chance(0.6) ? PUBLIC_HOSTS : BAD_HOSTS);
  return chance(0.02) ? [host, pick(GOOD_HOSTS)] : [host];
}

function makeBody(pick: Pick, chance: (share: number) => boolean, method: string) {
  const share = method === 'GET' || method === 'HEAD' ? 0.03 : 0.6;
  if (!chance(share)) return { headers: [], text: '' };
  const text = pick([
    '',
    'x',
    'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n',
    '\r\n\r\n',
    'x'.repeat(300),
  ]);
  if (chance(0.6)) return { headers: [`Content-Length: ${text.length}`], text };
  const chunks = text === '' ? '' : `${text.length.toString(16)};a=b\r\n${text}\r\n`;
  return { headers: ['Transfer-Encoding: chunked'], text: `${chunks}0\r\n\r\n` };
}

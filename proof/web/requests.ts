import type { Sent } from './model.ts';
import {
  METHODS,
  ODD_METHODS,
  PATHS,
  NEAR,
  SCRAPS,
  QUERIES,
  GOOD_HOSTS,
  PUBLIC_HOSTS,
  BAD_HOSTS,
  BROWSER,
  ELSEWHERE,
  OTHER,
  RIGHT,
  UNREAD,
  WRONG,
  BREAKS,
} from './scraps.ts';
import { PROJECTS } from './served.ts';

/** A request, as bytes (latin1) and as the model reads it. */
export interface Made extends Sent {
  readonly bytes: string;
}

export interface Makings {
  readonly random: () => number;
  readonly assets: readonly string[];
  /** Whether the connection has the right certificate; undefined if passwords are used. */
  readonly hasCertificate: boolean | undefined;
  /** Whether it is the last request of its connection and asks to close it. */
  readonly isLast: boolean;
}

type Pick = <T>(list: readonly T[]) => T;

/** Returns a random request, usually almost valid. */
export function makeRequest(makings: Makings): Made {
  const { random, assets, hasCertificate, isLast } = makings;
  const chance = (share: number) => random() < share;
  const pick: Pick = (list) => list[Math.floor(random() * list.length)] as (typeof list)[number];

  const method = chance(0.06) ? pick(ODD_METHODS) : pick(METHODS);
  const version = chance(0.1) ? pick(['1.0', '1.0', '1.0', '0.9', '2.0']) : '1.1';
  const target = makeTarget(pick, chance, assets);
  const login = chance(0.5)
    ? pick(RIGHT)
    : chance(0.4)
      ? pick(chance(0.1) ? WRONG : UNREAD)
      : undefined;
  const logins = login === undefined ? [] : [login, ...(chance(0.02) ? [login] : [])];
  const headers: (readonly [string, string])[] = [
    ...makeHosts(pick, chance).map((host) => [pick(['Host', 'host', 'HOST']), host] as const),
    ...logins.map((value) => [pick(['Authorization', 'authorization']), value] as const),
    ...(chance(0.15) ? [pick(BROWSER)] : []),
    ...(chance(0.12) ? [pick(ELSEWHERE)] : []),
    ...(chance(0.1) ? [pick(OTHER)] : []),
  ];
  if (chance(0.3)) headers.reverse();
  if (isLast) headers.push(['Connection', 'close']);
  const body = makeBody(pick, chance, method);
  headers.push(...body.headers);
  const lines = [
    `${method} ${target} HTTP/${version}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  const bytes = `${lines.join('\r\n')}\r\n\r\n${body.text}`;
  const isBroken = isLast && chance(0.03);
  return {
    method,
    target,
    version,
    headers,
    isLoggedIn: hasCertificate ?? (login !== undefined && RIGHT.includes(login)),
    isBroken,
    bytes: isBroken ? pick(BREAKS)(lines.slice(0, 2).join('\r\n') + '\r\n\r\n') : bytes,
  };
}

function makeTarget(
  pick: Pick,
  chance: (share: number) => boolean,
  assets: readonly string[],
): string {
  let path = chance(0.1) ? pick(NEAR) : pick(PATHS);
  if (chance(0.03)) path = pick(assets);
  if (chance(0.04))
    path = `/projects/${encodeURIComponent(chance(0.8) ? pick(PROJECTS) : pick(SCRAPS))}`;
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
  if (chance(0.6)) return { headers: [['Content-Length', String(text.length)] as const], text };
  const chunks = text === '' ? '' : `${text.length.toString(16)};a=b\r\n${text}\r\n`;
  return { headers: [['Transfer-Encoding', 'chunked'] as const], text: `${chunks}0\r\n\r\n` };
}

/**
 * The hostile service, a process of its own. Arguments: the beginning of the keys that it expects, and the form of the proof. It first sends
 * its {@link Address} to its parent, which sends a {@link Mood} to set, or `report` to get a {@link Report}.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  DETAILS,
  detailsListing,
  goodDetail,
  HEALTHY,
  livelyListing,
  type Mood,
  nastyText,
  ODD,
  oddListing,
} from './cast.ts';
import { type Answer, type Exchange, GOOD, listing } from './exchange.ts';
import { hugeOnes } from './huge.ts';
import { KINDS } from './kinds.ts';

export interface Address {
  readonly url: string;
  /** Allowed outcomes of polls, by hostile project. */
  readonly ends: Readonly<Record<string, readonly string[]>>;
  /** Hostile projects whose answers ask to wait for minutes. */
  readonly held: readonly string[];
  /** Hostile projects with the largest answers. */
  readonly huge: readonly string[];
}

export interface Report {
  /** Number of listing requests while the service was hostile, by project. */
  readonly asked: Readonly<Record<string, number>>;
  /** Number of requests for single prompts in that time. */
  readonly details: number;
  /** Number of connections to the other server. */
  readonly elsewhere: number;
  /** Request lines with a wrong key, or with a path that must not be requested. */
  readonly strange: readonly string[];
  /** Longest time that an exchange without a complete answer was open, ms, and its project or prompt. */
  readonly longest: { readonly ms: number; readonly what: string };
  /** Number of closed exchanges of that kind. */
  readonly unanswered: number;
  /** Times of the requests for listings of each healthy project, epoch ms. */
  readonly arrivals: Readonly<Record<string, readonly number[]>>;
  /** Statuses that were served for the lively prompt, in order. */
  readonly moves: readonly string[];
  /** Longest delay of this process's own event loop, ms. */
  readonly lagMs: number;
}

const [key = '', form = 'long'] = process.argv.slice(2);
const MOVES_MS = 1500;

const huge = few(hugeOnes());
const cheap = few(KINDS);
const hostilities = { ...cheap, ...huge };
const kinds = Object.keys(hostilities);
let mood: Mood = 'good';
/** Whether it has ever been hostile: failures stay. */
let hasTurned = false;
let moves = 0;
let elsewhere = 0;
let unanswered = 0;
let details = 0;
let longest = { ms: 0, what: '' };
const asked: Record<string, number> = {};
const strange: string[] = [];
const arrivals: Record<string, number[]> = Object.fromEntries(HEALTHY.map((id) => [id, []]));
const shown: string[] = [];
const open = new Map<Exchange, { readonly at: number; readonly what: string }>();
const lag = monitorEventLoopDelay({ resolution: 10 });
lag.enable();

const trap = createServer((socket) => {
  elsewhere += 1;
  socket.destroy();
});
const trapAddress = await listen(trap);
const server = createServer((socket) => serve(socket));
const address = await listen(server);
setInterval(() => {
  if (mood === 'hostile') moves += 1;
}, MOVES_MS);

process.on('message', (message: Mood | 'report') => {
  if (message !== 'report') {
    mood = message;
    hasTurned ||= mood === 'hostile';
    return;
  }
  for (const each of open.keys()) longest = longestYet(each);
  const lagMs = lag.max / 1e6;
  const report: Report = {
    asked,
    details,
    elsewhere,
    strange,
    longest,
    unanswered,
    arrivals,
    lagMs,
    moves: shown,
  };
  process.send?.(report);
});
process.on('disconnect', () => process.exit());
const told: Address = {
  url: `http://${address}`,
  ends: Object.fromEntries(kinds.map((kind) => [kind, hostilities[kind]?.ends ?? []])),
  held: kinds.filter((kind) => hostilities[kind]?.holds),
  huge: Object.keys(huge),
};
process.send?.(told);

/** Keeps every fourth one in the tests, which poll less. */
function few<Kind>(all: Readonly<Record<string, Kind>>): Readonly<Record<string, Kind>> {
  if (form !== 'tests') return all;
  return Object.fromEntries(Object.entries(all).filter((_, index) => index % 4 === 0));
}

async function listen(listening: Server): Promise<string> {
  listening.listen(0, '127.0.0.1', 1024);
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  return `127.0.0.1:${port}`;
}

/** Reads requests from a connection. They have no bodies here, so each empty line ends one. */
function serve(socket: Socket): void {
  let text = '';
  let current: Exchange | undefined;
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      const request = text.slice(0, end);
      text = text.slice(end + 4);
      current = begin(socket, request);
    }
  });
  socket.on('end', () => socket.destroy());
  socket.on('close', () => {
    if (current !== undefined) close(current);
  });
}

function begin(socket: Socket, request: string): Exchange {
  const [line = ''] = request.split('\r\n');
  const [, path = ''] = line.split(' ');
  const [, sentKey = ''] = /^x-api-key: (.*)$/im.exec(request) ?? [];
  const [, project] = /^\/v2\/projects\/([^/]+)\/prompts\/$/.exec(path) ?? [];
  const [, prompt] = /^\/v2\/prompts\/([^/]+)\/$/.exec(path) ?? [];
  const subject = decodeURIComponent(project ?? prompt ?? '');
  if (!sentKey.startsWith(key) || subject === '' || (prompt !== undefined && isNever(subject))) {
    strange.push(line);
  }
  const exchange: Exchange = {
    socket,
    path,
    key: sentKey,
    elsewhere: trapAddress,
    turn: asked[subject] ?? 0,
    answered: () => open.delete(exchange),
  };
  open.set(exchange, { at: performance.now(), what: subject });
  const answer = project === undefined ? detailOf(subject) : listingOf(subject);
  answer(exchange);
  return exchange;
}

/** Whether no path can carry this id. */
function isNever(id: string): boolean {
  return id === '.' || id === '..';
}

function close(exchange: Exchange): void {
  if (!open.has(exchange)) return;
  longest = longestYet(exchange);
  open.delete(exchange);
  unanswered += 1;
}

/** Returns the longest exchange so far, including this one. */
function longestYet(exchange: Exchange): Report['longest'] {
  const { at, what } = open.get(exchange) ?? { at: Infinity, what: '' };
  const ms = performance.now() - at;
  return ms > longest.ms ? { ms, what } : longest;
}

function listingOf(project: string): Answer {
  arrivals[project]?.push(Date.now());
  if (mood === 'hostile') asked[project] = (asked[project] ?? 0) + 1;
  if (project === 'lively') {
    const { status, body } = livelyListing(moves);
    shown.push(status);
    return listing(body);
  }
  if (project === ODD)
    return listing((exchange) => oddListing(exchange, hasTurned ? 'hostile' : 'good'));
  if (project === DETAILS) return listing(detailsListing(Object.keys(cheap), hasTurned));
  const hostility = mood === 'hostile' ? hostilities[project] : undefined;
  if (hostility !== undefined) return hostility.answer;
  const isHealthy = HEALTHY.some((id) => id === project);
  return listing(GOOD, isHealthy ? { etag: `"${key}"` } : {});
}

function detailOf(prompt: string): Answer {
  if (mood === 'hostile') details += 1;
  const hostility = mood === 'hostile' ? hostilities[prompt] : undefined;
  // A long wait would hold the details of all others.
  const answer = hostility?.holds === true ? undefined : hostility?.answer;
  return answer ?? listing((exchange) => goodDetail(nastyText(exchange.key)));
}

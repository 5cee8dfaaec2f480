/**
 * Clients from many addresses that ask slowly, read nothing or read everything, and 200 scrapes at once every 2 s. Arguments:
 * the daemon's URL, and the time in seconds. Prints {@link Crowd} as JSON.
 */
import { get } from 'node:http';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';

export interface Crowd {
  /** Number of connections, each of which is opened again when it has ended. */
  readonly connections: number;
  /** Number of scrapes by status; 0 if there was no whole answer. */
  readonly scrapes: Readonly<Record<number, number>>;
}

/** Requests, how many at once, and whether the clients read the answers. */
const WANTED = [
  { count: 2100, text: 'GET /metrics HTTP/1.1\r\nhost:', isRead: true },
  { count: 500, text: requestOf('/metrics'), isRead: false },
  { count: 300, text: requestOf('/api/v1/events?after=t0.f0'), isRead: true },
  { count: 100, text: requestOf('/api/v1/events?after=t0.f0'), isRead: false },
  { count: 32, text: requestOf('/api/v1/failures?limit=1000'), isRead: true },
  { count: 32, text: requestOf('/api/v1/failures?limit=1000'), isRead: false },
];
const AT_ONCE = 200;
const WAVE_MS = 2000;

/** Returns the status of a whole answer on a new connection; 0 if there was none. */
export async function statusOf(url: string, localAddress: string): Promise<number> {
  return await new Promise((resolve) => {
    get(url, { agent: false, localAddress }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', () => resolve(0));
    }).on('error', () => resolve(0));
  });
}

async function besiege(url: string, seconds: number): Promise<Crowd> {
  const { hostname: host, port } = new URL(url);
  const over = AbortSignal.timeout(seconds * 1000);
  let connections = 0;
  const open = (text: string, isRead: boolean) => {
    if (over.aborted) return;
    // The daemon accepts 100 connections from one address.
    const localAddress = `127.0.1.${connections % 40}`;
    const socket = connect({ host, port: Number(port), localAddress, signal: over });
    connections += 1;
    socket.on('connect', () => socket.write(text));
    if (isRead) socket.resume();
    socket.on('error', () => {});
    socket.on('close', () => globalThis.setTimeout(open, 100, text, isRead));
  };
  for (const { count, text, isRead } of WANTED) {
    for (let n = 0; n < count; n += 1) open(text, isRead);
  }
  const scrapes: Record<number, number> = {};
  while (!over.aborted) {
    const wave = Array.from({ length: AT_ONCE }, async (_, n) => {
      const status = await statusOf(`${url}/metrics`, `127.0.2.${n % 20}`);
      scrapes[status] = (scrapes[status] ?? 0) + 1;
    });
    await Promise.all([...wave, setTimeout(WAVE_MS)]);
  }
  return { connections, scrapes };
}

function requestOf(path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`;
}

if (import.meta.main) {
  const [url = '', seconds] = process.argv.slice(2);
  console.log(JSON.stringify(await besiege(url, Number(seconds))));
  process.exit();
}

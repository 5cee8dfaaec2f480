/**
 * Clients at one address that request as much as they can. Arguments: the daemon's URL, and the duration in seconds. Prints
 * {@link Siege} as JSON.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

export interface Siege {
  readonly pageBytes: number;
  readonly streamBytes: number;
  /** Number of connections, most of which send a part of a request. */
  readonly connections: number;
}

const [url = '', seconds] = process.argv.slice(2);
/** Path, number of simultaneous requests, and whether responses are read. */
const WANTED = [
  { count: 300, path: () => '/api/v1/events?after=t0.f0', isRead: true },
  { count: 100, path: () => '/api/v1/events?after=t0.f0', isRead: false },
  { count: 32, path: () => '/api/v1/failures?limit=1000', isRead: true },
  { count: 32, path: () => '/api/v1/failures?limit=1000', isRead: false },
  { count: 16, path: () => `/?find=${Math.random()}`, isRead: true },
  { count: 16, path: () => '/metrics', isRead: false },
] as const;
const HALF_OPEN = 2100;
const AGAIN_MS = 100;
const AT_ONCE = 50;

const { hostname, port } = new URL(url);
const sockets = new Set<Socket>();
let connections = 0;
let pageBytes = 0;
let streamBytes = 0;
let isOver = false;

/** Sends a text over a new connection, and again after that has closed. */
function open(text: () => string, isRead: boolean, onBytes: (bytes: number) => void): void {
  if (isOver) return;
  const socket = connect({ host: hostname, port: Number(port) });
  sockets.add(socket);
  socket.on('connect', () => {
    connections += 1;
    socket.write(text());
  });
  socket.on('data', ({ length }) => onBytes(length));
  if (!isRead) socket.pause();
  socket.on('error', () => {});
  socket.on('close', () => {
    sockets.delete(socket);
    globalThis.setTimeout(open, AGAIN_MS, text, isRead, onBytes);
  });
}

for (const { count, path, isRead } of WANTED) {
  const text = () => `GET ${path()} HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n\r\n`;
  const onBytes = (bytes: number) => {
    if (path().startsWith('/api/v1/events')) streamBytes += bytes;
    else pageBytes += bytes;
  };
  for (let n = 0; n < count; n += 1) open(text, isRead, onBytes);
}
for (let n = 0; n < HALF_OPEN; n += 1) {
  open(
    () => 'GET /metrics HTTP/1.1\r\nhost:',
    true,
    () => {},
  );
  if (n % AT_ONCE === 0) await setTimeout(AT_ONCE);
}
await setTimeout(Number(seconds) * 1000);
isOver = true;
const siege: Siege = { pageBytes, streamBytes, connections };
console.log(JSON.stringify(siege));
for (const socket of sockets) socket.destroy();
process.exit();

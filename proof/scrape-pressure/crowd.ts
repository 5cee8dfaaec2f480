/**
 * Crowd of clients at /metrics, from 20 addresses. Arguments: the daemon's URL, the number of scrapes at once every two seconds, the number of
 * slow clients (every second one sends its request a byte at a time, the others read no response), and the duration in
 * seconds. Prints {@link Crowd} as JSON.
 */
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

export interface Crowd {
  /** Number of responses by status code, or by error if there was none. */
  readonly answers: Readonly<Record<string, number>>;
  /** Longest time to connect, ms: the kernel retries after 1, 3, 7 and 15 s if too many wait to be accepted. */
  readonly slowestConnection: number;
  /** Longest time from there to the end of the response, ms. */
  readonly slowestAnswer: number;
  readonly slowClients: number;
  /** Slow clients that the daemon disconnected. */
  readonly ended: number;
}

const [url = '', parallel, slow, seconds] = process.argv.slice(2);
const WAVE_MS = 2000;
const BYTE_MS = 500;
const AT_ONCE = 50;
const PAUSE_MS = 50;
/** The daemon accepts 100 connections from one address. */
const addressOf = (n: number) => `127.0.1.${n % 20}`;

const answers: Record<string, number> = {};
let slowestConnection = 0;
let slowestAnswer = 0;
let slowClients = 0;
let ended = 0;

const { hostname, port } = new URL(url);
const text = `GET /metrics HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`;
const byteByByte: Socket[] = [];
const sockets: Socket[] = [];
for (let n = 0; n < Number(slow); n += 1) {
  const socket = connect({ host: hostname, port: Number(port), localAddress: addressOf(n) });
  sockets.push(socket);
  socket.on('connect', () => {
    slowClients += 1;
    if (n % 2 === 0) socket.write(text);
    else byteByByte.push(socket);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    ended += 1;
  });
  if (n % 2 === 0) socket.pause();
  // More at once would fill the kernel's queue, where the daemon does not see them yet.
  if (n % AT_ONCE === 0) await setTimeout(PAUSE_MS);
}
let sent = 0;
const drip = setInterval(() => {
  for (const socket of byteByByte) if (socket.writable) socket.write(text.charAt(sent));
  sent += 1;
}, BYTE_MS);

const waves = Array.from(
  { length: Math.ceil((Number(seconds) * 1000) / WAVE_MS) },
  async (_, n) => {
    await setTimeout(n * WAVE_MS);
    await Promise.all(
      Array.from({ length: Number(parallel) }, (_each, scrape) =>
        scrapeOnce(scrape % 2 === 0, addressOf(scrape)),
      ),
    );
  },
);
await Promise.all(waves);
clearInterval(drip);
const crowd: Crowd = { answers, slowestConnection, slowestAnswer, slowClients, ended };
console.log(JSON.stringify(crowd));
for (const socket of sockets) socket.destroy();

async function scrapeOnce(isZipped: boolean, localAddress: string): Promise<void> {
  const begun = performance.now();
  let connected = begun;
  const answer = await new Promise<string>((resolve) => {
    const headers = { 'accept-encoding': isZipped ? 'gzip' : 'identity' };
    const options = { agent: false, headers, localAddress };
    const asked = request(`${url}/metrics`, options, (response) => {
      response.resume();
      response.on('end', () => resolve(String(response.statusCode)));
      response.on('error', () => resolve('broken off'));
    });
    asked.on('socket', (socket) =>
      socket.on('connect', () => {
        connected = performance.now();
      }),
    );
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    asked.end();
  });
  slowestAnswer = Math.max(slowestAnswer, performance.now() - connected);
  slowestConnection = Math.max(slowestConnection, connected - begun);
  answers[answer] = (answers[answer] ?? 0) + 1;
}

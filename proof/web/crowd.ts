import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { ask } from '../../test/support/ask.ts';
import { PASSWORD, type Served, USER } from './served.ts';

/** More requests than the limit of ordinary answers. */
const STREAMS = 40;
const HALVES = 40;
const PATHS = ['/metrics', '/', '/api/v1/failures', '/-/healthy'];

/** Holds idle streams with many spellings of their path, and half requests, and checks that other clients are answered. */
export async function crowdOut(ports: Served['ports'], random: () => number): Promise<number> {
  const login = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  let asked = 0;
  for (const port of [ports.open, ports.login]) {
    const head = `Host: 127.0.0.1\r\nAuthorization: Basic ${login}\r\n`;
    const sockets = [
      ...Array.from({ length: STREAMS }, () => `GET ${spelling(random)} HTTP/1.1\r\n${head}\r\n`),
      ...Array.from({ length: HALVES }, () => `GET /metrics HTTP/1.1\r\n${head}`),
    ].map((bytes) => open(port, bytes));
    await Promise.all(sockets.slice(0, STREAMS).map((socket) => once(socket, 'data')));
    await setTimeout(100);
    for (const path of PATHS) {
      const { status } = await ask(`http://127.0.0.1:${port}${path}`, {
        auth: `${USER}:${PASSWORD}`,
      });
      if (status !== 200) throw new Error(`${path} kept out: ${status}`);
      asked += 1;
    }
    for (const socket of sockets) socket.destroy();
  }
  return asked;
}

function open(port: number, bytes: string): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(bytes);
  return socket;
}

function spelling(random: () => number): string {
  const path = Array.from('/api/v1/events', (each) =>
    each !== '/' && random() < 0.3 ? `%${each.charCodeAt(0).toString(16)}` : each,
  );
  return `${random() < 0.3 ? 'http://127.0.0.1' : ''}${path.join('')}${random() < 0.3 ? '?type=poll' : ''}`;
}

import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limitConnections } from '../../../../src/web/limits/connections.ts';
import { PATIENCE } from '../../../support/evalwatch.ts';
import { makeCertificate } from '../../../support/certificates.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

await using directory = await temporaryDirectory();
const { cert, key } = makeCertificate(directory.path, 'server');

describe.each(['http', 'https'])('connection limits over %s', (scheme) => {
  let server: Server;
  let waiting: ServerResponse[] = [];
  let requests = 0;
  const clients: Socket[] = [];

  beforeEach(async () => {
    waiting = [];
    requests = 0;
    server = scheme === 'http' ? createServer() : createTlsServer({ cert, key });
    server.on('request', (request, response) => {
      requests += 1;
      if (request.url === '/slow') waiting.push(response);
      else response.end('here');
    });
    limitConnections(server, {
      maxConnections: 4,
      maxPerClient: 3,
      maxAnswers: 3,
      maxAllAnswers: 5,
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy();
    server.closeAllConnections();
    server.close();
  });

  /** Connects from an address of this host, and waits until it is accepted. */
  async function open(from: string): Promise<Socket> {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const accepted = once(server, 'connection');
    const below = connect({ host: '127.0.0.1', port, localAddress: from });
    const socket =
      scheme === 'http' ? below : connectTls({ socket: below, rejectUnauthorized: false });
    socket.on('error', () => {});
    clients.push(socket);
    await accepted;
    return socket;
  }

  async function answerTo(socket: Socket, path: string): Promise<string> {
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    return String(data);
  }

  async function askSlowly(socket: Socket): Promise<void> {
    const asked = once(server, 'request');
    socket.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n');
    await asked;
  }

  const closed = async (socket: Socket) => {
    await new Promise((resolve) => (socket.closed ? resolve(0) : socket.once('close', resolve)));
    return true;
  };

  it('close the longest idle connection of a client above its limit', async () => {
    const asked = await open('127.0.0.1');
    const oldest = await open('127.0.0.1');
    const another = await open('127.0.0.1');
    expect(await answerTo(asked, '/')).toContain('200');

    const next = await open('127.0.0.1');

    expect(await closed(oldest)).toBe(true);
    for (const socket of [next, asked, another]) {
      expect(await answerTo(socket, '/')).toContain('200');
    }
  });

  it('close an idle connection of the client with the most when the total limit is reached', async () => {
    const other = await open('127.0.0.2');
    const first = await open('127.0.0.1');
    await open('127.0.0.1');
    await open('127.0.0.1');

    const probe = await open('127.0.0.3');

    expect(await closed(first)).toBe(true);
    expect(await answerTo(probe, '/')).toContain('200');
    expect(await answerTo(other, '/')).toContain('200');
  });

  it('close the oldest connection of a client if all have an unfinished response', async () => {
    const first = await open('127.0.0.1');
    const others = [await open('127.0.0.1'), await open('127.0.0.1')];
    for (const socket of [first, ...others]) await askSlowly(socket);

    const probe = await open('127.0.0.1');

    expect(await closed(first)).toBe(true);
    expect(await answerTo(probe, '/')).toContain('200');
    const other = await open('127.0.0.2');
    await askSlowly(other);
    for (const response of waiting) response.end('at last');
    const answers = await Promise.all([...others, other].map((socket) => once(socket, 'data')));
    expect(answers.map(([data]) => String(data).split('\r\n')[0])).toEqual(
      Array.from({ length: 3 }, () => 'HTTP/1.1 200 OK'),
    );
  });

  it('close a connection with too many unfinished responses, and drop its other requests', async () => {
    const flooding = await open('127.0.0.1');
    const other = await open('127.0.0.1');

    flooding.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1700));

    expect(await closed(flooding)).toBe(true);
    expect(requests).toBe(4);
    expect(await answerTo(other, '/')).toContain('200');
  });

  it('close the connection with the most unfinished responses when there are too many', async () => {
    const [one, most, two] = [
      await open('127.0.0.1'),
      await open('127.0.0.1'),
      await open('127.0.0.2'),
    ];
    await askSlowly(one);
    for (let n = 0; n < 3; n += 1) await askSlowly(most);
    await askSlowly(two);
    await askSlowly(two);

    expect(await closed(most)).toBe(true);
    await askSlowly(one);
    expect([one.closed, two.closed]).toEqual([false, false]);
  });

  it('do not count connections that have closed', async () => {
    const idle = await open('127.0.0.1');
    const others = [await open('127.0.0.1'), await open('127.0.0.1')];
    for (const socket of others) socket.destroy();
    const connections = promisify(server.getConnections.bind(server));
    await vi.waitFor(async () => expect(await connections()).toBe(1), PATIENCE);

    const next = await open('127.0.0.1');

    // If the closed ones still counted, the idle one would make room for the new one.
    for (const socket of [idle, next]) expect(await answerTo(socket, '/')).toContain('200');
  });
});

import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { limitConnections } from '../../../src/web/limits.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { startWeb } from '../../support/web.ts';

await using directory = await temporaryDirectory();
const { cert, key } = makeCertificate(directory.path, 'server');

describe.each(['http', 'https'])('beyond the maximum number of connections over %s', (scheme) => {
  /** Starts a server for at most three connections. */
  async function serve() {
    const waiting: ServerResponse[] = [];
    const server: Server = scheme === 'http' ? createServer() : createTlsServer({ cert, key });
    server.on('request', (request, response) => {
      if (request.url === '/slow') waiting.push(response);
      else response.end('here');
    });
    const connections = limitConnections(server, 3);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      connections.close();
      server.close();
    });
    /** Connects, and waits until the connection is accepted. With TLS, its handshake waits for `ask`. */
    async function open(): Promise<Socket> {
      const accepted = once(server, 'connection');
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      await accepted;
      return socket.on('error', () => {});
    }
    /** Asks for a path, and waits for the answer unless it is slow. Returns the connection to ask again. */
    async function ask(below: Socket, path = '/'): Promise<Socket> {
      const isPlain = scheme === 'http' || 'encrypted' in below;
      const socket = isPlain ? below : connectTls({ socket: below, rejectUnauthorized: false });
      socket.on('error', () => {});
      const asked = once(server, 'request');
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await asked;
      if (path !== '/slow') expect(await answerOf(socket)).toContain('here');
      return socket;
    }
    return { server, waiting, connections, open, ask };
  }

  const answerOf = async (socket: Socket) => String((await once(socket, 'data'))[0]);
  /** Whether the server has closed a connection, or will. */
  async function isClosed(socket: Socket): Promise<boolean> {
    if (!socket.closed) await once(socket.resume(), 'close');
    return socket.closed;
  }

  it('a new one replaces the one that has been idle for longest', async () => {
    const { open, ask } = await serve();
    const [used, silent] = [await open(), await open()];
    const asked = await ask(used);

    await open();
    await open();

    expect(await isClosed(silent)).toBe(true);
    await ask(asked);
  });

  it('those with an unfinished answer stay', async () => {
    const { open, ask, waiting } = await serve();
    const busy = [await ask(await open(), '/slow'), await ask(await open(), '/slow')];
    const idle = await open();

    await ask(await open());

    expect(await isClosed(idle)).toBe(true);
    for (const response of waiting) response.end('late');
    for (const answer of await Promise.all(busy.map(answerOf))) expect(answer).toContain('late');
  });

  it('a new one is closed while all others have unfinished answers', async () => {
    const { open, ask, waiting } = await serve();
    const busy: Socket[] = [];
    for (let n = 0; n < 3; n += 1) busy.push(await ask(await open(), '/slow'));

    expect(await isClosed(await open())).toBe(true);

    for (const response of waiting) response.end('late');
    for (const answer of await Promise.all(busy.map(answerOf))) expect(answer).toContain('late');
  });

  it('those that have closed do not count', async () => {
    const { open, ask, server } = await serve();
    const kept = await open();
    for (let n = 0; n < 5; n += 1) {
      const accepted = once(server, 'connection') as Promise<[Socket]>;
      const short = await open();
      const [socket] = await accepted;
      short.destroy();
      await once(socket, 'close');
    }
    expect((await ask(kept)).closed).toBe(false);
  });

  it('all can be closed, also before their handshake', async () => {
    const { open, ask, connections } = await serve();
    const all = [await ask(await open()), await open()];

    connections.close();

    expect(await Promise.all(all.map(isClosed))).toEqual([true, true]);
  });
});

it('a reload may take longer than the time-out of idle connections', async () => {
  const reloading = Promise.withResolvers<{ ok: true; reasons: [] }>();
  const asked = Promise.withResolvers<void>();
  const reload = () => {
    asked.resolve();
    return reloading.promise;
  };
  const { url } = await startWeb(
    { isLifecycleEnabled: () => true, reload },
    { timeouts: { idleMs: 100 } },
  );
  const idle = connect(Number(new URL(url).port), '127.0.0.1');
  const answer = fetch(`${url}/-/reload`, { method: 'POST' });
  await asked.promise;
  // Opened before the reload and then idle: when it is closed, so would be the reload.
  await once(idle.resume(), 'close');
  await once(connect(Number(new URL(url).port), '127.0.0.1').resume(), 'close');
  reloading.resolve({ ok: true, reasons: [] });
  expect((await answer).status).toBe(200);
});

import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { createRequestFilter } from '../../../../src/web/request/filter.ts';
import type { Handler } from '../../../../src/web/handler.ts';

/** Bytes that node:http reads from a connection at once. */
const READ_BYTES = 64 * 1024;

it('the request filter ignores pipelined requests after a response that closes the connection', async () => {
  const asked: string[] = [];
  const handle: Handler = (_request, response, { path }) => {
    asked.push(path);
    // The first answer ends the connection while the second one waits behind it.
    if (path === '/waits') return;
    response.writeHead(200, { connection: 'close', 'content-length': 0 });
    response.end();
  };
  const server = createServer(
    createRequestFilter(
      () => [],
      () => {},
    ).filter(handle),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });

  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const head = 'GET /last HTTP/1.1\r\nHost: x\r\nContent-Length: ';
  const tail = `\r\n\r\n${get('/waits')}`;
  const size = READ_BYTES - head.length - tail.length - 5;
  const first = `${head}${size}\r\n\r\n${'x'.repeat(size)}${get('/waits')}`;
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(first + get('/behind'));
  await text(socket).catch(() => '');

  expect(first).toHaveLength(READ_BYTES);
  expect(asked).toEqual(['/last']);
});

it('the request filter answers an exception with 500, reports it and keeps serving', async () => {
  const bugs: unknown[] = [];
  const handle: Handler = (_request, response, { path }) => {
    if (path === '/begun') response.write('some');
    if (path !== '/fine') throw new TypeError(path);
    response.end('fine');
  };
  const names = () => {
    throw new TypeError('names');
  };
  const server = createServer(
    createRequestFilter(names, (error) => bugs.push(error)).filter(handle),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const origin = { origin: 'http://elsewhere' };
  expect((await fetch(`${url}/change`, { method: 'POST', headers: origin })).status).toBe(500);
  expect((await fetch(`${url}/before`)).status).toBe(500);
  const begun = async () => (await fetch(`${url}/begun`)).text();
  await expect(begun()).rejects.toThrow(/fetch failed|terminated/);
  expect(await (await fetch(`${url}/fine`)).text()).toBe('fine');
  expect(bugs.map(String)).toEqual(['TypeError: names', 'TypeError: /before', 'TypeError: /begun']);
});

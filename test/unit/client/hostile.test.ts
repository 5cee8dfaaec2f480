import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  answering,
  connect,
  failureOf,
  inTurn,
  KEY,
  listOptions,
  ofType,
  raw,
  RUNNING,
  serve,
  type TestClientOptions,
} from './harness.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const BODY = JSON.stringify(
  Array.from({ length: 500 }, (_, index) => ({ id: `p${index}`, status: 'RUNNING' })),
);

/** Reads a listing from such a server. `end` is the number of records, or the reason of the failure. */
async function outcome(listener: RequestListener, options: Partial<TestClientOptions> = {}) {
  const { url, requests, sockets } = await serve(listener);
  const { service, events } = connect({ baseUrl: url, ...options });
  const call = service.list('p', 'prompt', listOptions());
  const end = await call.then(
    (answer) => (answer.unchanged ? 'unchanged' : answer.listing.records.size),
    async () => (await failureOf(call)).reason,
  );
  return { end, url, requests, sockets, events, service };
}

describe('a compressed body', () => {
  it.each([
    ['gzip', gzipSync(BODY)],
    ['x-gzip', gzipSync(BODY)],
    ['GZIP', gzipSync(BODY)],
    ['gzip', Buffer.concat([gzipSync(BODY.slice(0, 99)), gzipSync(BODY.slice(99))])],
    ['identity', BODY],
    ['', BODY],
  ])(
    'with content encoding "%s" is decompressed, and its decompressed bytes are counted',
    async (coding, body) => {
      const { end, events } = await outcome(answering(200, body, { 'content-encoding': coding }));
      expect(end).toBe(500);
      expect(ofType(events, 'api.request_finished')).toMatchObject([{ bytes: BODY.length }]);
    },
  );

  it('is decompressed when it arrives byte by byte', async () => {
    const { end } = await outcome((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      Readable.from(Array.from(gzipSync(BODY), (byte) => Buffer.of(byte))).pipe(response);
    });
    expect(end).toBe(500);
  });

  it('is an invalid response when it is truncated', async () => {
    const body = gzipSync(BODY);
    const { end, events } = await outcome(
      answering(200, body.subarray(0, body.length - 9), { 'content-encoding': 'gzip' }),
      { retries: 2 },
    );
    expect(end).toBe('invalid_response');
    expect(ofType(events, 'api.request_finished')).toMatchObject([{ failure: 'invalid_response' }]);
  });

  it('ends with the answer, and not with its last compressed byte, when zeros follow', async () => {
    const padded = Buffer.concat([gzipSync(BODY), Buffer.alloc(1)]);
    for (const zeros of [Buffer.of(), Buffer.alloc(900_000)]) {
      const whole = Buffer.concat([padded, zeros]);
      const listener = answering(200, whole, { 'content-encoding': 'gzip' });
      expect((await outcome(listener)).end).toBe(500);
    }
    const { end, sockets } = await outcome(
      (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).write(padded),
      { timeoutMs: 500 },
    );
    expect(end).toBe('timeout');
    await vi.waitFor(() => expect(sockets.size).toBe(0), PATIENCE);
  });

  it('is a network error when the connection closes early', async () => {
    const { end } = await outcome((_, response) => {
      const body = gzipSync(BODY);
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': body.length });
      response.write(body.subarray(0, body.length >> 1), () => response.destroy());
    });
    expect(end).toBe('network');
  });

  it.each([
    ['garbage', Buffer.from('no gzip at all')],
    ['nothing', Buffer.alloc(0)],
  ])('is an invalid response if it is %s', async (_, body) => {
    const { end } = await outcome(answering(200, body, { 'content-encoding': 'gzip' }));
    expect(end).toBe('invalid_response');
  });

  it.each(['br', 'gzip, gzip, gzip', `secret ${KEY}`])(
    'in the coding "%s" is an invalid response that names the coding, without a key',
    async (coding) => {
      const { url } = await serve(answering(200, BODY, { 'content-encoding': coding }));
      const { service } = connect({ baseUrl: url });
      const { reason, message } = await failureOf(service.list('p', 'prompt', listOptions()));
      const shown = coding.replace(KEY, '[redacted]');
      expect([reason, message]).toEqual([
        'invalid_response',
        `the body has the Content-Encoding "${shown}", and only gzip was asked for`,
      ]);
    },
  );

  it('with garbage is rejected before the body ends', async () => {
    const { end } = await outcome((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.write('no gzip at all');
    });
    expect(end).toBe('invalid_response');
  });

  it('that decompresses to nothing is too large once it exceeds the limit itself', async () => {
    const members = Buffer.concat(Array<Buffer>(1000).fill(gzipSync('')));
    const { end } = await outcome(
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' });
        const more = () => {
          while (!response.destroyed && response.write(members)) continue;
        };
        response.on('drain', more);
        more();
      },
      { maxResponseBytes: 10 * members.length },
    );
    expect(end).toBe('too_large');
  });
});

describe('the response size limit', () => {
  const limit = { maxResponseBytes: 100_000 };

  it('accepts a body of exactly the limit and rejects one that is a byte longer', async () => {
    const body = BODY.padEnd(100_000, ' ');
    expect((await outcome(answering(200, body), limit)).end).toBe(500);
    expect((await outcome(answering(200, `${body} `), limit)).end).toBe('too_large');
  });

  it('rejects a body that decompresses to more, before all of it is decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024));
    const { end, events } = await outcome(answering(200, bomb, { 'content-encoding': 'gzip' }), {
      ...limit,
      retries: 2,
    });
    expect(end).toBe('too_large');
    const [finished, ...others] = ofType(events, 'api.request_finished');
    expect(finished).toMatchObject({ failure: 'too_large' });
    expect(finished?.bytes).toBeLessThan(400_000);
    expect(others).toEqual([]);
  });

  it.each([
    ['an item', (size: number) => `[1,{"id":"p","status":"RUNNING","x":"${'x'.repeat(size)}"},2]`],
    [
      'the end of an item',
      (size: number) => `[1,{"id":"p","status":"RUNNING","x":"${'x'.repeat(size)}`,
    ],
  ])('of %s is 1 MiB, whatever the limit of the body is', async (_, body) => {
    const mebibyte = 1024 * 1024;
    const options = { maxResponseBytes: 64 * mebibyte };
    const { url } = await serve(
      inTurn(answering(200, body(mebibyte)), answering(200, body(mebibyte - 99))),
    );
    const { service } = connect({ baseUrl: url, ...options });
    const { reason, message } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect([reason, message]).toEqual([
      'too_large',
      'item 1 of the listing is larger than 1048576 bytes',
    ]);
    const next = await service.list('p', 'prompt', listOptions()).catch((error: unknown) => error);
    expect(next).not.toMatchObject({ reason: 'too_large' });
  });

  it('of a detail is 1 MiB, whatever the limit of the body is', async () => {
    const body = JSON.stringify({ x: 'x'.repeat(1024 * 1024), error_info: { error_id: 'E' } });
    const { url } = await serve(answering(200, body));
    const { service } = connect({ baseUrl: url, maxResponseBytes: 64 * 1024 * 1024 });
    const { reason } = await failureOf(service.getErrorInfo('p', 'id', RUNNING));
    expect(reason).toBe('too_large');
  });

  it.each([
    ['identity', (body: Buffer) => body],
    ['gzip', gzipSync],
  ])(
    'rejects a listing with more than maxItems items before all of it is read: %s',
    async (coding, encode) => {
      const list = Buffer.from('['.concat('0,'.repeat(1024 * 1024)));
      const { end, events } = await outcome(
        answering(200, encode(list), { 'content-encoding': coding }),
        { maxResponseBytes: 64 * 1024 * 1024, maxItems: 1000, retries: 2 },
      );
      expect(end).toBe('too_large');
      const [finished, ...others] = ofType(events, 'api.request_finished');
      expect(finished).toMatchObject({ failure: 'too_large' });
      expect(finished?.bytes).toBeLessThan(400_000);
      expect(others).toEqual([]);
    },
  );

  it('stops reading a body that exceeds it and closes the connection', async () => {
    let written = 0;
    let closed: Promise<unknown> | undefined;
    const { end, sockets } = await outcome((_, response) => {
      closed = once(response, 'close');
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, ' '))) written += 65_536;
      };
      response.on('drain', more);
      more();
    }, limit);
    expect(end).toBe('too_large');
    await closed;
    await vi.waitFor(() => expect(sockets.size).toBe(0), PATIENCE);
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });

  it('rejects a larger Content-Length without waiting for the body', async () => {
    const { end, events } = await outcome((_, response) => {
      response.writeHead(200, { 'content-length': 100_001 });
      response.flushHeaders();
    }, limit);
    expect(end).toBe('too_large');
    expect(ofType(events, 'api.request_finished')).toMatchObject([
      { bytes: 0, failure: 'too_large' },
    ]);
  });

  it('is at most 1 MiB for an error response, which keeps its reason if its body is larger', async () => {
    const endless: RequestListener = (_, response) => {
      response.writeHead(500);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) continue;
      };
      response.on('drain', more);
      more();
    };
    const { end, events } = await outcome(endless, { maxResponseBytes: 64 * 1024 * 1024 });
    expect(end).toBe('server_error');
    expect(ofType(events, 'api.request_finished')[0]?.bytes).toBeLessThan(2 * 1024 * 1024);
  });
});

describe('the request timeout', () => {
  const short = { timeoutMs: 300 };

  async function drip(response: ServerResponse, text: string): Promise<void> {
    for (const character of text) {
      if (response.destroyed || response.socket?.destroyed !== false) return;
      response.socket.write(character);
      await sleep(20);
    }
  }

  it.each<[string, RequestListener]>([
    ['never answers', () => {}],
    [
      'sends its header drop by drop',
      (_, response) => void drip(response, `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(500)}`),
    ],
    [
      'sends its body drop by drop',
      (_, response) =>
        void drip(response, `HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${'[ '.repeat(250)}`),
    ],
    ['never ends its body', (_, response) => void response.writeHead(200).write('[')],
    [
      'never ends its compressed body',
      (_, response) =>
        void response
          .writeHead(200, { 'content-encoding': 'gzip' })
          .write(gzipSync(BODY).subarray(0, 20)),
    ],
    [
      'sends early hints for ever',
      (_, response) => {
        const timer = setInterval(
          () => response.socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'),
          20,
        );
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('ends a request to a server that %s, and closes the connection', async (_, listener) => {
    const { end, events, sockets } = await outcome(listener, short);
    expect(end).toBe('timeout');
    expect(ofType(events, 'api.request_finished')).toMatchObject([{ failure: 'timeout' }]);
    await vi.waitFor(() => expect(sockets.size).toBe(0), PATIENCE);
  });

  it('is not waited for when the server sends more than 1,000 early hints', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1001);
    const flood: RequestListener = (_, response) => void response.socket?.write(hints);
    const { end, sockets } = await outcome(flood, { retries: 0 });
    expect(end).toBe('invalid_response');
    await vi.waitFor(() => expect(sockets.size).toBe(0), PATIENCE);
  });

  it('ends a request whose TLS handshake never completes, retries included', async () => {
    const server = createServer({ pauseOnConnect: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { service } = connect({ baseUrl: `https://127.0.0.1:${port}`, ...short, retries: 1 });
    const { reason } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(reason).toBe('timeout');
  });

  it('starts anew for each attempt', async () => {
    const { end, requests } = await outcome(
      inTurn(() => {}, answering(200, BODY)),
      { timeoutMs: 1000, retries: 1 },
    );
    expect(end).toBe(500);
    expect(requests).toHaveLength(2);
  });

  it('keeps the reason of an error response whose body never ends', async () => {
    const { end } = await outcome((_, response) => void response.writeHead(401).write('no'), {
      timeoutMs: 1000,
    });
    expect(end).toBe('auth');
  });

  it('does not count the wait for a slot', async () => {
    const { url } = await serve((_, response) => void setTimeout(() => response.end(BODY), 200));
    const { service } = connect({ baseUrl: url, timeoutMs: 1000, maxConcurrency: 1 });
    const listings = Array.from({ length: 8 }, (_, index) =>
      service.list(`p${index}`, 'prompt', listOptions()),
    );
    await expect(Promise.all(listings)).resolves.toHaveLength(8);
  });
});

describe('a connection', () => {
  const half = `HTTP/1.1 200 OK\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY.slice(0, 999)}`;

  it.each<[string, RequestListener]>([
    ['is cut before the answer', (_, response) => response.socket?.destroy()],
    ['is reset before the answer', (_, response) => response.socket?.resetAndDestroy()],
    ['is cut within the body', raw(half)],
    [
      'is reset within the body',
      (_, response) => response.socket?.write(half, () => response.socket?.resetAndDestroy()),
    ],
    [
      'is cut within a chunk',
      raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n[{"id"'),
    ],
    [
      'is cut between chunks',
      raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n'),
    ],
  ])('that %s is retried as a network error', async (_, broken) => {
    const { end, events } = await outcome(inTurn(broken, answering(200, BODY)), { retries: 1 });
    expect(end).toBe(500);
    expect(ofType(events, 'api.retry_scheduled')).toMatchObject([{ reason: 'network' }]);
    expect(ofType(events, 'api.request_finished')[0]).toMatchObject({ failure: 'network' });
  });

  it.each<[string, string]>([
    [
      'a broken chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]xx\r\n0\r\n\r\n',
    ],
  ])('that brings %s is an invalid response', async (_, bytes) => {
    expect((await outcome(raw(bytes), { retries: 1 })).end).toBe('invalid_response');
  });

  it('that is cut within the header counts as a kept one that was closed, once in each attempt', async () => {
    const broken = raw('HTTP/1.1 200 OK\r\nContent-Le');
    const { end, events, requests } = await outcome(broken, { retries: 1 });
    expect(end).toBe('network');
    expect(requests).toHaveLength(4);
    expect(ofType(events, 'api.retry_scheduled')).toMatchObject([{ reason: 'network' }]);
  });

  it('that is refused is a network error', async () => {
    const { url, server } = await serve(answering(200));
    server.close();
    await once(server, 'close');
    const { service, events } = connect({ baseUrl: url });
    const { reason, message } = await failureOf(service.list('p', 'prompt', listOptions()));
    expect(reason).toBe('network');
    expect(message).toContain('ECONNREFUSED');
    expect(ofType(events, 'api.responded')).toEqual([]);
  });

  it('can end a response that has no length', async () => {
    expect((await outcome(raw(`HTTP/1.0 200 OK\r\n\r\n${BODY}`))).end).toBe(500);
  });

  it('can deliver early hints before the response', async () => {
    const early = `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
    const { end, events } = await outcome(raw(early));
    expect(end).toBe(500);
    expect(ofType(events, 'api.responded')).toMatchObject([{ statusCode: 200 }]);
  });
});

describe('the API key', () => {
  it('appears in no result, error or event, wherever the service echoes it', async () => {
    const told: unknown[] = [];
    const echoes: readonly RequestListener[] = [
      answering(
        200,
        JSON.stringify([
          { id: 'p1', status: KEY, name: KEY },
          { id: KEY, status: 'FAILED' },
        ]),
      ),
      answering(200, JSON.stringify([{ id: KEY, status: 'FAILED' }])),
      answering(200, `[${KEY}`),
      answering(422, JSON.stringify({ detail: [{ msg: KEY, [KEY]: KEY }] })),
      answering(307, '', { location: `/${KEY}?${encodeURIComponent(KEY)}` }),
      answering(200, KEY, { 'content-encoding': 'gzip' }),
      answering(200, '', { 'content-encoding': KEY }),
      answering(500, KEY, { 'retry-after': KEY, etag: KEY }),
      raw(`HTTP/1.1 200 ${KEY}\r\n${KEY}\r\n\r\n`),
      raw(`${KEY}\r\n\r\n`),
    ];
    for (const echo of echoes) {
      const { url } = await serve(echo);
      const { service, events } = connect({ baseUrl: url });
      told.push(
        await service.list('p', 'prompt', listOptions()).catch((error: unknown) => error),
        events,
      );
    }
    const info = JSON.stringify({ error_info: { error_id: KEY, error_msg: `denied: ${KEY}` } });
    const { url } = await serve(answering(200, info));
    told.push(await connect({ baseUrl: url }).service.getErrorInfo('p', 'p1', RUNNING));
    const text = inspect(told, { depth: null, showHidden: true });
    expect(text).toContain('[redacted]');
    expect(text).not.toContain(KEY);
    expect(text).not.toContain(encodeURIComponent(KEY));
  });
});

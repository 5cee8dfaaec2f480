import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer, text as textOf } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import type { StoreReader } from '../../../src/monitor/ports/store.ts';
import { EventFeed } from '../../../src/web/events/feed.ts';
import type { FinishedPoll } from '../../../src/monitor/events.ts';
import type { PollNow } from '../../../src/web/content.ts';
import type { RenderMetrics } from '../../../src/web/scrapes.ts';
import { ask } from '../../support/ask.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { pieces } from '../../support/pieces.ts';
import { startWeb, WITHOUT_PROJECTS } from '../../support/web.ts';

const start = async (...args: Parameters<typeof startWeb>) => (await startWeb(...args)).url;

describe('GET', () => {
  it('/-/ready returns 503 while the daemon is not ready, and /-/healthy returns 200', async () => {
    const url = await start({ isReady: () => false });

    expect((await fetch(`${url}/-/ready`)).status).toBe(503);
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);
  });
});

it.each(['/nothing', '/metrics/', '/-/nothing'])(
  'the unknown path %s is answered with a JSON 404',
  async (path) => {
    const url = await start();

    const answer = await fetch(url + path);

    expect(answer.status).toBe(404);
    expect(await answer.json()).toHaveProperty('error');
  },
);

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  'the method %s on /metrics is answered with a JSON 405',
  async (method) => {
    const url = await start();

    const answer = await fetch(`${url}/metrics`, { method });

    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
    expect(await answer.json()).toHaveProperty('error');
  },
);

describe('POST /-/reload', () => {
  it('is forbidden unless the configuration allows it', async () => {
    const url = await start();

    expect((await fetch(`${url}/-/reload`, { method: 'POST' })).status).toBe(403);
    expect((await fetch(`${url}/-/reload`)).status).toBe(405);
  });

  it('returns 500 with the reason if the reload fails', async () => {
    const reload = () => Promise.resolve({ ok: false, reasons: ['a.yaml:1:1: wrong'] });
    const url = await start({ isLifecycleEnabled: () => true, reload });

    const answer = await fetch(`${url}/-/reload`, { method: 'POST' });

    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual({ error: 'a.yaml:1:1: wrong' });
  });

  it('returns 200 if the configuration was applied', async () => {
    const url = await start({ isLifecycleEnabled: () => true });

    expect((await fetch(`${url}/-/reload`, { method: 'POST' })).status).toBe(200);
  });
});

describe('POST /-/poll', () => {
  const post = (url: string, query = '', headers = {}) =>
    fetch(`${url}/-/poll${query}`, { method: 'POST', headers, redirect: 'manual' });
  const isLifecycleEnabled = () => true;
  const polled = {
    type: 'poll.finished',
    isStored: true,
    project: 'p',
    failure: undefined,
    prompts: 2,
    transitions: 1,
    durationMs: 3.2,
  } as FinishedPoll;

  it('is forbidden unless the configuration allows it', async () => {
    const url = await start();

    expect((await post(url)).status).toBe(403);
    expect((await fetch(`${url}/-/poll`)).status).toBe(405);
  });

  it('returns 503 while the daemon is not ready', async () => {
    const url = await start({ isLifecycleEnabled, isReady: () => false });

    expect((await post(url)).status).toBe(503);
  });

  it.each([
    ['?project=p', 'p', 0, 200],
    ['?project=a%2Fb', 'a/b', 1, 202],
    ['', undefined, 0, 200],
  ])(
    'with query "%s" polls project %s, and with %i polls pending returns %i',
    async (query, id, pending, status) => {
      const pollNow = vi.fn<PollNow>(async () => ({ polled: [polled], pending }));
      const url = await start({ isLifecycleEnabled, pollNow });

      const answer = await post(url, query);

      expect(answer.status).toBe(status);
      const row = {
        project: 'p',
        ok: true,
        reason: null,
        prompts: 2,
        transitions: 1,
        duration_ms: 3,
      };
      expect(await answer.json()).toEqual({ polled: [row], pending });
      expect(pollNow.mock.calls).toEqual([[id]]);
    },
  );

  it.each(['?project=', '?project=a&project=b', '?projekt=a'])(
    'rejects the query %s with 400',
    async (query) => {
      const pollNow = vi.fn<PollNow>();
      const url = await start({ isLifecycleEnabled, pollNow });

      expect((await post(url, query)).status).toBe(400);
      expect(pollNow).not.toHaveBeenCalled();
    },
  );

  it.each([
    ['unknown', 404, 404],
    ['elsewhere', 409, 409],
    ['running', 409, 303],
    ['busy', 503, 503],
  ] as const)(
    'maps the refusal %s to status %i, and to %i for an HTML form',
    async (refusal, status, ofForm) => {
      const pollNow = () => Promise.resolve({ refusal, error: 'why' });
      const url = await start({ isLifecycleEnabled, pollNow });

      const answer = await post(url, '?project=p');

      expect([answer.status, await answer.json()]).toEqual([status, { error: 'why' }]);
      expect((await post(url, '?project=p', { accept: 'text/html,*/*' })).status).toBe(ofForm);
    },
  );

  it.each([
    ['?project=a%2Fb%20%0A', '../projects/a%2Fb%20%0A'],
    ['?project=//evil.example', '../projects/%2F%2Fevil.example'],
    ['', '../'],
  ])('with query "%s" from an HTML form redirects to %s', async (query, location) => {
    const url = await start({ isLifecycleEnabled });

    const answer = await post(url, query, { accept: 'text/html,*/*;q=0.8' });

    expect([answer.status, answer.headers.get('location')]).toEqual([303, location]);
  });
});

describe('a scrape', () => {
  /** Returns many pieces of an exposition, some of them empty. */
  const manyPieces = async (lines = 2000) =>
    Array.from({ length: lines }, (_, n) => Buffer.from(n % 3 === 0 ? '' : `metric_${n} ${n}\n`));

  async function getMetrics(url: string, acceptEncoding?: string) {
    const headers = acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding };
    const asked = get(`${url}/metrics`, { agent: false, headers });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  }

  it('is compressed with gzip if the client accepts it, with the same text', async () => {
    const url = await start({ renderMetrics: () => manyPieces() });
    const expected = Buffer.concat(await manyPieces()).toString();

    const plain = await getMetrics(url);
    const zipped = await getMetrics(url, 'gzip');

    expect(plain.body.toString()).toBe(expected);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(zipped.body).toString()).toBe(expected);
    expect(zipped.body.length).toBeLessThan(plain.body.length / 2);
    for (const { headers, body } of [plain, zipped]) {
      expect(headers['content-length']).toBe(String(body.length));
      expect(headers.vary).toBe('accept-encoding');
      expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    }
  });

  it.each([
    ['gzip', ['gzip', 'deflate, GZIP', 'gzip;q=0.5, identity;q=0.1', 'br;q=1.0, gzip ; q=0.8']],
    [undefined, [undefined, '', 'br', 'gzipped', 'gzip;q=0', 'gzip;q=0.5, identity']],
  ])('has the Content-Encoding %s with each Accept-Encoding of %j', async (encoding, accepted) => {
    const url = await start();
    for (const each of accepted) {
      const { headers, body } = await getMetrics(url, each);
      expect([each, headers['content-encoding']]).toEqual([each, encoding]);
      expect(headers).toMatchObject({
        'content-length': String(body.length),
        vary: 'accept-encoding',
      });
      const plain = encoding === 'gzip' ? gunzipSync(body) : body;
      expect(plain.toString()).toBe('evalwatch_build_info 1\n');
    }
  });

  it('shares one rendering with those at the same time', async () => {
    const rendered = Promise.withResolvers<readonly Buffer[]>();
    const renderMetrics = vi.fn<RenderMetrics>(() => rendered.promise);
    const url = await start({ renderMetrics });
    const scrapes = [getMetrics(url), getMetrics(url, 'gzip')];
    await vi.waitFor(() => expect(renderMetrics).toHaveBeenCalled(), PATIENCE);
    await ask(`${url}/-/healthy`);
    rendered.resolve([Buffer.from('a 1\n')]);
    await Promise.all(scrapes);
    expect(renderMetrics).toHaveBeenCalledTimes(1);
    await getMetrics(url);
    expect(renderMetrics).toHaveBeenCalledTimes(2);
  });

  describe('whose client stops reading', () => {
    const LINES = 'x'.repeat(1024 * 1024);
    const COUNT = 8;

    /** Returns more than the buffers of a connection hold. */
    const large = async () => Array.from({ length: COUNT }, () => Buffer.from(LINES));

    /** Starts clients that read only the beginning of their responses. */
    async function stopReading(url: string, count: number): Promise<readonly Socket[]> {
      return await Promise.all(
        Array.from({ length: count }, async () => {
          const socket = connect(Number(new URL(url).port), '127.0.0.1');
          socket.on('error', () => {});
          socket.write(request('/metrics'));
          await once(socket, 'readable');
          return socket;
        }),
      );
    }

    /** Returns whether the response to a client is cut short. */
    async function isCut(socket: Socket): Promise<boolean> {
      const answer = await buffer(socket).catch(() => Buffer.alloc(0));
      return answer.length < COUNT * LINES.length;
    }

    it('is closed after 15 s, and other scrapes are answered meanwhile', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const url = await start({ renderMetrics: large });
      const [slow] = await stopReading(url, 1);
      if (slow === undefined) throw new Error('no client');

      expect((await getMetrics(url)).body).toHaveLength(COUNT * LINES.length);
      expect(gunzipSync((await getMetrics(url, 'gzip')).body)).toHaveLength(COUNT * LINES.length);
      vi.advanceTimersByTime(15_000);
      vi.useRealTimers();

      expect(await isCut(slow)).toBe(true);
    });
  });
});

/** Sends bytes. Returns all responses of the connection. */
async function send(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.setEncoding('latin1');
  socket.write(bytes, 'latin1');
  return await textOf(socket);
}

function request(target: string, headers = 'Host: 127.0.0.1', method = 'GET'): string {
  return `${method} ${target} HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`;
}

const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(answer)?.[1]);

describe('limit of concurrent requests', () => {
  it.each([
    ['/metrics', 256, '/-/healthy'],
    ['/api/v1/failures', 32, '/metrics'],
  ])(
    'answers requests of %s beyond %i with 503, and still those of %s',
    async (path, max, other) => {
      const held = Promise.withResolvers<[]>();
      const failures = () => held.promise;
      const renderMetrics = () => pieces(path === '/metrics' ? held.promise.then(String) : '');
      const url = await start({
        renderMetrics,
        store: { ...WITHOUT_PROJECTS.store, failures },
      });

      const asked = Array.from({ length: max + 8 }, () => fetch(url + path));
      const first = await Promise.race(asked);
      const others = await fetch(url + other);
      held.resolve([]);
      const statuses = (await Promise.all(asked)).map(({ status }) => status);

      expect([first.status, others.status]).toEqual([503, 200]);
      expect(statuses.toSorted((a, b) => a - b)).toEqual(
        statuses.map((_, n) => (n < max ? 200 : 503)),
      );
    },
  );

  it.each([
    '/api/v1/events',
    '/api/v1/%65vents',
    '/%61pi/v1/event%73?type=poll',
    'http://127.0.0.1/api/v1/events',
  ])('does not apply to the event stream %s', async (target) => {
    const empty = {
      transitions: [],
      settled: [],
      finishes: [],
      end: { transition: 0, settlement: 0, finish: 0 },
    };
    const feed = new EventFeed({ events: () => Promise.resolve(empty) });
    const url = await start({ feed });

    const streams = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const asked = get(url, { agent: false, path: target });
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        return response;
      }),
    );
    const page = await fetch(url);
    const areOpen = streams.every((stream) => !stream.closed);
    for (const stream of streams) stream.destroy();

    expect(streams.map(({ statusCode }) => statusCode)).toEqual(Array.from(streams, () => 200));
    expect({ page: page.status, areOpen }).toEqual({ page: 200, areOpen: true });
  });

  it('does not count answers behind a stream whose connection a CONNECT ended', async () => {
    const empty = {
      transitions: [],
      settled: [],
      finishes: [],
      end: { transition: 0, settlement: 0, finish: 0 },
    };
    const feed = new EventFeed({ events: () => Promise.resolve(empty) });
    const failures = vi.fn<StoreReader['failures']>(() => Promise.resolve([]));
    const url = await start({ feed, store: { ...WITHOUT_PROJECTS.store, failures } });
    const events = 'GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n';
    const behind = 'GET /api/v1/failures HTTP/1.1\r\nHost: x\r\n\r\n';
    for (let calls = 15; calls <= 45; calls += 15) {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.resume().write(events + behind.repeat(15));
      await vi.waitFor(() => expect(failures).toHaveBeenCalledTimes(calls), PATIENCE);
      socket.write('CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(socket, 'close');
    }
    expect((await fetch(url)).status).toBe(200);
  });
});

describe('every response', () => {
  it.each([
    [200, 'a scrape', request('/metrics')],
    [200, 'the overview', request('/')],
    [200, 'the API', request('/api/v1/projects')],
    [200, 'a probe over HTTP/1.0', 'GET /-/healthy HTTP/1.0\r\n\r\n'],
    [400, 'an unknown parameter', request('/api/v1/projects?x=1')],
    [400, 'an invalid Host', request('/metrics', 'Host: x/')],
    [400, 'OPTIONS *', request('*', 'Host: x', 'OPTIONS')],
    [403, 'a reload', request('/-/reload', 'Host: x', 'POST')],
    [404, 'an unknown path', request('//metrics')],
    [405, 'TRACE', request('/metrics', 'Host: x', 'TRACE')],
    [421, 'an unknown Host', request('/', 'Host: evil.example')],
  ])(
    'with status %d to %s cannot be sniffed, framed or read by other sites, and is a JSON error exactly from 400 on',
    async (status, _, bytes) => {
      const url = await start();
      const answer = await send(url, bytes);
      expect(statusOf(answer)).toBe(status);
      expect(answer).toMatch(/^x-content-type-options: nosniff\r$/im);
      expect(answer).toMatch(/^cross-origin-resource-policy: same-origin\r$/im);
      expect(answer.match(/^content-security-policy: .*$/gim)).toEqual([
        expect.stringContaining("frame-ancestors 'none'"),
      ]);
      expect(answer).not.toMatch(/^access-control-/im);
      const isError =
        /^content-type: application\/json\r$/im.test(answer) && answer.includes('{"error"');
      expect(isError).toBe(status >= 400);
    },
  );
});

describe('what cannot be read as a request gets an empty answer', () => {
  it.each([
    [400, 'a missing Host', 'GET /metrics HTTP/1.1\r\n\r\n'],
    [400, 'nonsense', 'nonsense\r\n\r\n'],
    [417, 'an unknown expectation', request('/metrics', 'Host: x\r\nExpect: more')],
    [431, 'a large header', request('/', `Host: x\r\nX: ${'x'.repeat(20_000)}`)],
    [408, 'half a request, after a time', 'GET /metrics HTTP/1.1\r\nHost: x'],
  ])('with status %d: %s', async (status, _, bytes) => {
    const url = await start({}, { timeouts: { requestMs: 300 } });
    const answer = await send(url, bytes);
    expect(statusOf(answer)).toBe(status);
    expect(answer).toMatch(/\r\n\r\n(?:0\r\n\r\n)?$/);
  });
});

it('a client that does not read its events loses its connection, and nothing is read for it any more', async () => {
  const end = { transition: 1e9, settlement: 0, finish: 0 };
  const long = { at: 0, kind: 'prompt', id: 'x'.repeat(1000), from: 'NEW', to: 'RUNNING' } as const;
  /** Returns events without an end. */
  const events: StoreReader['events'] = async ({ transition }, limit) => {
    await nextTurn();
    const transitions = Array.from({ length: limit }, (_, n) => {
      return { ...long, experiment: undefined, project: 'p', transitionId: transition + n + 1 };
    });
    return { transitions, settled: [], finishes: [], end };
  };
  const feed = new EventFeed({ events });
  const sending = vi.spyOn(feed, 'send');
  const url = await start({ feed }, { timeouts: { idleMs: 1000 } });
  const slow = connect(Number(new URL(url).port), '127.0.0.1');
  slow.on('error', () => {}).pause();
  slow.write('GET /api/v1/events?after=t0.f0 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  const ended = { type: 'fulfilled', value: undefined };
  await vi.waitFor(() => expect(sending.mock.settledResults).toEqual([ended]), PATIENCE);
  slow.destroy();
});

it('responses announce a keep-alive timeout of 30 s', async () => {
  const url = await start();
  expect((await fetch(`${url}/metrics`)).headers.get('keep-alive')).toBe('timeout=30');
});

it('a client that writes 1,700 requests at once loses its connection, and others are answered', async () => {
  const url = await start();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {});
  socket.write('GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1700));
  let answers = 0;
  socket.on('data', (data) => (answers += data.toString().split('HTTP/1.1 ').length - 1));

  await once(socket, 'close');

  expect(answers).toBeLessThan(850);
  expect((await ask(`${url}/-/healthy`)).status).toBe(200);
});

it('a pipelined request with Expect: 100-continue gets no 100 response', async () => {
  const { url } = await startWeb();
  const waiting = request('/metrics', 'Host: x\r\nExpect: 100-continue', 'POST');
  const answer = await send(url, `GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n${waiting}`);
  expect(answer.match(/HTTP\/1\.1 \d+ /g)).toEqual(['HTTP/1.1 200 ', 'HTTP/1.1 405 ']);
});

it('starting the server on a port in use fails with EADDRINUSE and the port', async () => {
  const url = new URL(await start());
  const port = Number(url.port);

  const second = start({}, { port });

  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE', port });
});

it('closing the server ends open connections', async () => {
  const server = await startWeb();
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n');

  const ended = new Promise((resolve) => socket.once('error', resolve).once('close', resolve));
  await server.close();
  await ended;

  expect(socket.destroyed).toBe(true);
});

it('an exception in a page is answered 500, passed to onBug, and does not stop the server', async () => {
  const bugs: unknown[] = [];
  const bug = new RangeError('Invalid time value');
  const url = await start({
    onBug: (error) => bugs.push(error),
    monitor: () => {
      throw bug;
    },
  });
  const broken = await fetch(url);
  expect(broken.status).toBe(500);
  expect(await broken.json()).toEqual({ error: 'evalwatch could not answer this request' });
  expect((await fetch(`${url}/metrics`)).status).toBe(200);
  expect(bugs).toEqual([bug]);
});

it('an exception in a running event stream ends the stream and is passed to onBug', async () => {
  const bugs: unknown[] = [];
  const bug = new TypeError('not a row');
  const end = { transition: 0, settlement: 0, finish: 0 };
  const events: StoreReader['events'] = async (_, limit) => {
    if (limit > 0) throw bug;
    return { transitions: [], settled: [], finishes: [], end };
  };
  const url = await start({
    onBug: (error) => bugs.push(error),
    feed: new EventFeed({ events }),
  });
  const stream = await fetch(`${url}/api/v1/events`);
  expect(await stream.text()).toBe('retry: 2000\nid: t0.f0.x0\n\n');
  expect(bugs).toEqual([bug]);
});

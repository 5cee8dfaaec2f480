import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { NEVER_POLLED } from '../../../src/monitor/poll-health.ts';
import { createEventFeed } from '../../../src/web/events/feed.ts';
import { watchMonitor } from '../../../src/web/page/monitor-state.ts';
import { startWebServer, type WebServer } from '../../../src/web/server.ts';
import { fakeClock } from '../../support/monitor.ts';

const rows = () => Promise.resolve([]);
const store = {
  events: () => Promise.reject(new Error('not asked for')),
};
const api = {
  feed: createEventFeed(store),
  clock: fakeClock(),
  store: {
    snapshot: () => Promise.resolve({ projects: [], backlog: { count: 0, oldestAt: undefined } }),
    projects: rows,
    statuses: rows,
    transitions: rows,
    failures: rows,
  },
  health: () => NEVER_POLLED,
  nextPollAt: () => undefined,
};
const clock = fakeClock();
const statusPage = {
  version: '1.2.3',
  clock,
  store: { ...api.store, moves: () => Promise.resolve({ since: 0, moves: [] }) },
  retentionMs: 1000,
  isReady: () => true,
  projects: () => [],
  monitor: () => watchMonitor(clock).state(),
};

let server: WebServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function start(content: Partial<Parameters<typeof startWebServer>[0]> = {}) {
  server = await startWebServer(
    {
      renderMetrics: () => Promise.resolve('evalwatch_build_info 1\n'),
      metricsContentType: 'text/plain; version=0.0.4; charset=utf-8',
      isReady: () => true,
      api,
      page: statusPage,
      mayReload: () => false,
      reload: () => Promise.resolve({ ok: true, reasons: [] }),
      ...content,
    },
    { host: '127.0.0.1', port: 0 },
  );
  return server.url;
}

describe('GET', () => {
  it('/metrics answers in text format 0.0.4 whatever is asked for', async () => {
    const url = await start();

    const answer = await fetch(`${url}/metrics`, {
      headers: { accept: 'application/openmetrics-text; version=1.0.0' },
    });

    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await answer.text()).toBe('evalwatch_build_info 1\n');
  });

  it('/-/ready is 503 while the daemon is not ready, and /-/healthy is not', async () => {
    const url = await start({ isReady: () => false });

    expect((await fetch(`${url}/-/ready`)).status).toBe(503);
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);
  });

  it('/ leads to the other pages', async () => {
    const url = await start();

    const page = await (await fetch(url)).text();

    expect(page).toContain('1.2.3');
    for (const path of ['/metrics', '/-/healthy', '/-/ready']) expect(page).toContain(path);
  });
});

it('answers HEAD like GET, without a body', async () => {
  const url = await start();

  const answer = await fetch(`${url}/metrics`, { method: 'HEAD' });

  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain('0.0.4');
  expect(await answer.text()).toBe('');
});

it.each(['/nothing', '/metrics/', '/-/nothing', '/%2e%2e/etc/passwd'])(
  'says in JSON that there is nothing at %s',
  async (path) => {
    const url = await start();

    const answer = await fetch(url + path);

    expect(answer.status).toBe(404);
    expect(await answer.json()).toHaveProperty('error');
  },
);

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  'says in JSON that %s is not possible',
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

  it('says why the configuration could not be applied', async () => {
    const reload = () => Promise.resolve({ ok: false, reasons: ['a.yaml:1:1: wrong'] });
    const url = await start({ mayReload: () => true, reload });

    const answer = await fetch(`${url}/-/reload`, { method: 'POST' });

    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual({ error: 'a.yaml:1:1: wrong' });
  });

  it('is 200 when it was applied', async () => {
    const url = await start({ mayReload: () => true });

    expect((await fetch(`${url}/-/reload`, { method: 'POST' })).status).toBe(200);
  });
});

it('answers an error of its own without telling what it was', async () => {
  const url = await start({ renderMetrics: () => Promise.reject(new Error('secret detail')) });

  const answer = await fetch(`${url}/metrics`);

  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain('secret');
});

/** Of a request for exactly this path, which fetch would tidy up. */
async function statusOf(url: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(url);
  const [response] = (await once(get({ hostname, port, path }), 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

it('turns requests away when too many are in flight, but stays healthy', async () => {
  const held = Promise.withResolvers<string>();
  const url = await start({ renderMetrics: () => held.promise });

  const scrapes = Array.from({ length: 80 }, () => fetch(`${url}/metrics`));
  const first = await Promise.race(scrapes);
  const healthy = await fetch(`${url}/-/healthy`);
  const roundabout = await statusOf(url, '/-/../metrics');
  held.resolve('evalwatch_build_info 1\n');
  const statuses = (await Promise.all(scrapes)).map((answer) => answer.status);

  expect(first.status).toBe(503);
  expect(healthy.status).toBe(200);
  expect(roundabout).toBe(503);
  expect(statuses.filter((status) => status === 200)).toHaveLength(32);
  expect(statuses.filter((status) => status === 503)).toHaveLength(48);
});

it('says which address is taken', async () => {
  const url = new URL(await start());
  const port = Number(url.port);

  const second = startWebServer(
    {
      renderMetrics: () => Promise.resolve(''),
      metricsContentType: 'text/plain',
      isReady: () => true,
      api,
      page: statusPage,
      mayReload: () => false,
      reload: () => Promise.resolve({ ok: true, reasons: [] }),
    },
    { host: '127.0.0.1', port },
  );

  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE', port });
});

it('ends connections that are still open when it closes', async () => {
  const url = new URL(await start());
  const socket = connect(Number(url.port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n');

  const ended = new Promise((resolve) => socket.once('error', resolve).once('close', resolve));
  await server?.close();
  server = undefined;
  await ended;

  expect(socket.destroyed).toBe(true);
});

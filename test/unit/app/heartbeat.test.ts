import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Engine } from '../../../src/app/engine.ts';
import { Heartbeat } from '../../../src/app/heartbeat.ts';
import { version } from '../../../src/app/process.ts';
import type { HeartbeatUrl } from '../../../src/config/config.ts';
import type { Logger } from '../../../src/log/logger.ts';
import type { MonitorEvent, Observer } from '../../../src/monitor/events.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const SECRET = '5ecret-5ecret-5ecret';

// Requests take real time, but do not wait before they are repeated.
beforeEach(() => void vi.spyOn(systemClock, 'sleep').mockResolvedValue());
afterEach(() => void vi.restoreAllMocks());

interface Line {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Sets up an external monitor, whose status `answer` sets, and a heartbeat whose minutes pass by `nextMinute`. */
async function setUp({ isConnected = (): boolean => true } = {}) {
  const requests: { readonly path: string | undefined; readonly headers: object }[] = [];
  const answers: number[] = [];
  let usual = 200;
  const server = createServer((request, response: ServerResponse) => {
    if (request.url === '/later') {
      response.end();
      return;
    }
    requests.push({ path: request.url, headers: request.headers });
    const status = answers.shift() ?? usual;
    response.writeHead(status, status === 302 ? { location: `/elsewhere/${SECRET}` } : {});
    response.end(`body with ${SECRET}`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const lines: Line[] = [];
  const waits = new AbortController();
  const observers: Observer[] = [];
  const url = `http://127.0.0.1:${port}/ping/${SECRET}?from=evalwatch`;
  let source: HeartbeatUrl | undefined = { url };
  const projects = new Map([['p', {}]]);
  const engine = {
    get config() {
      return { heartbeat: source, service: {} };
    },
    projects,
    observe: (observer: Observer) => observers.push(observer),
    worker: { isConnected },
    shutdown: { waits: waits.signal },
  };
  const timers = new Map<() => void, number>();
  const heartbeat = new Heartbeat(
    engine as unknown as Engine,
    { warn: (fields: Line) => lines.push(fields) } as unknown as Logger,
    {
      ...systemClock,
      now: () => 0,
      every: (ms, run) => {
        timers.set(run, ms);
        const timer = { cancel: () => void timers.delete(run), unref: () => timer };
        return timer;
      },
    },
  );
  heartbeat.start();
  const nextMinute = async () => {
    for (const run of timers.keys()) run();
    // Polls that have ended are judged.
    await setImmediate();
  };
  return {
    url,
    timers,
    projects,
    requests,
    lines,
    heartbeat,
    nextMinute,
    /** Begins a poll of project p, which the test ends. */
    poll: (dueAt = 0) => {
      const poll = Promise.withResolvers<{ isStored: boolean } | undefined>();
      void heartbeat.watch('p', { dueAt }, poll.promise);
      return {
        end: async (outcome: { isStored: boolean } | Error | undefined) => {
          if (outcome instanceof Error) poll.reject(outcome);
          else poll.resolve(outcome);
          await setImmediate();
        },
      };
    },
    /** Lets minutes pass until at least `count` requests have arrived. */
    minutesUntil: (count: number) =>
      vi.waitFor(async () => {
        await nextMinute();
        expect(requests.length).toBeGreaterThanOrEqual(count);
      }, PATIENCE),
    /** Returns the requests so far once a later one has arrived, so that none is under way. */
    received: async () => {
      await fetch(`http://127.0.0.1:${port}/later`);
      return requests;
    },
    sent: (count: number) => vi.waitFor(() => expect(requests).toHaveLength(count), PATIENCE),
    emit: (event: Partial<MonitorEvent>) => {
      for (const observe of observers) observe(event as MonitorEvent);
    },
    answer: (status: number, ...first: readonly number[]) => {
      usual = status;
      answers.push(...first);
    },
    configure: (next: HeartbeatUrl | undefined) => {
      source = next;
    },
    shutdown: () => waits.abort(new Error('stopping')),
    [Symbol.asyncDispose]: async () => {
      heartbeat.stop();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

it('a heartbeat is sent every minute, with the headers connection, host and user-agent only', async () => {
  await using world = await setUp();
  expect(await world.received()).toEqual([]);
  await world.nextMinute();
  await world.sent(1);
  await world.minutesUntil(2);
  const [{ path, headers } = { path: '', headers: {} }] = world.requests;
  expect(path).toBe(`/ping/${SECRET}?from=evalwatch`);
  expect(headers).toEqual({
    connection: 'keep-alive',
    host: new URL(world.url).host,
    'user-agent': `evalwatch/${version}`,
  });
  expect(world.lines).toEqual([]);
});

it.each([
  ['scheduler.overlapped', 'skipped'],
  ['scheduler.missed', 'missed'],
  ['worker.lease_lost', 'lease_lost'],
  ['store.commit_failed', 'store'],
] as const)(
  'no heartbeat is sent in a minute with %s, which is logged once',
  async (type, reason) => {
    await using world = await setUp();
    for (let minute = 0; minute < 3; minute += 1) {
      world.emit({ type });
      world.emit({ type: 'poll.finished' });
      await world.nextMinute();
    }
    expect(world.lines).toMatchObject([{ event: 'heartbeat.withheld', reason }]);
    expect(await world.received()).toEqual([]);
    await world.nextMinute();
    await world.sent(1);
  },
);

it.each([
  ['could not be stored', { isStored: false }, 'store'],
  ['was cancelled or refused', undefined, 'unfinished'],
  ['failed by a bug', new Error('a bug'), 'unfinished'],
])(
  'no heartbeat is sent in the minute in which a poll ended that %s',
  async (_, outcome, reason) => {
    await using world = await setUp();
    const poll = world.poll();
    await world.nextMinute();
    await world.sent(1);
    await poll.end(outcome);
    await world.poll().end({ isStored: true });
    await world.nextMinute();
    expect(world.lines).toMatchObject([{ event: 'heartbeat.withheld', reason }]);
    expect(await world.received()).toHaveLength(1);
    await world.nextMinute();
    await world.sent(2);
  },
);

it('no heartbeat is sent in a minute with a poll that began a minute late', async () => {
  await using world = await setUp();
  await world.poll(-59_999).end({ isStored: true });
  await world.nextMinute();
  await world.sent(1);
  await world.poll(-60_000).end({ isStored: true });
  await world.nextMinute();
  expect(world.lines).toMatchObject([{ event: 'heartbeat.withheld', reason: 'late' }]);
  expect(await world.received()).toHaveLength(1);
});

it('no heartbeat is sent at the end of a minute that a poll has outlasted, until it has ended', async () => {
  await using world = await setUp();
  const stuck = world.poll();
  await world.nextMinute();
  await world.sent(1);
  for (let minute = 0; minute < 3; minute += 1) await world.nextMinute();
  expect(world.lines).toMatchObject([{ event: 'heartbeat.withheld', reason: 'stuck' }]);
  expect(await world.received()).toHaveLength(1);
  await stuck.end({ isStored: true });
  await world.nextMinute();
  await world.sent(2);
});

it('polls of a project that a reload removes do not count', async () => {
  await using world = await setUp();
  await world.poll().end(undefined);
  await world.poll().end({ isStored: false });
  world.poll();
  world.projects.delete('p');
  for (let minute = 1; minute <= 3; minute += 1) {
    await world.nextMinute();
    await world.sent(minute);
  }
  expect(world.lines).toEqual([]);
});

it('no heartbeat is sent while the worker has no lease', async () => {
  let isConnected = false;
  await using world = await setUp({ isConnected: () => isConnected });
  await world.nextMinute();
  expect(world.lines).toMatchObject([{ event: 'heartbeat.withheld', reason: 'lease_lost' }]);
  expect(await world.received()).toEqual([]);
  isConnected = true;
  await world.nextMinute();
  await world.sent(1);
});

it.each([
  [302, 'redirect', 1],
  [404, 'client_error', 1],
  [503, 'server_error', 3],
])(
  'a heartbeat answered with %s is logged once per outage, without the secret of its URL',
  async (status, reason, tries) => {
    await using world = await setUp();
    world.answer(status);
    await world.nextMinute();
    await vi.waitFor(() => expect(world.lines).toHaveLength(1), PATIENCE);
    expect(world.requests).toHaveLength(tries);
    expect(world.requests.filter(({ path }) => path?.startsWith('/elsewhere'))).toEqual([]);
    await world.nextMinute();
    await world.sent(2 * tries);
    world.answer(200);
    await world.minutesUntil(2 * tries + 1);
    world.answer(status);
    await vi.waitFor(async () => {
      await world.nextMinute();
      expect(world.lines).toHaveLength(2);
    }, PATIENCE);
    expect(world.lines[0]).toMatchObject({
      event: 'heartbeat.failed',
      reason,
      status_code: status,
      err: { message: `the answer is ${status}` },
    });
    expect(JSON.stringify(world.lines.map((line) => [line, String(line['err'])]))).not.toContain(
      SECRET,
    );
  },
);

it('the error for an unreachable heartbeat URL contains neither its host nor its path', async () => {
  await using world = await setUp();
  world.configure({ url: `http://${SECRET}.invalid/${SECRET}` });
  await world.nextMinute();
  await vi.waitFor(() => expect(world.lines).toHaveLength(1), PATIENCE);
  expect(world.lines[0]).toMatchObject({ event: 'heartbeat.failed', reason: 'network' });
  expect(String(world.lines[0]?.['err'])).not.toContain(SECRET);
});

it('the heartbeat URL is read from its file before each request, and a missing file is logged', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'evalwatch-heartbeat-'));
  await using world = await setUp();
  const file = join(directory, 'url');
  world.configure({ file });
  await world.nextMinute();
  await vi.waitFor(() => expect(world.lines).toHaveLength(1), PATIENCE);
  expect(world.lines[0]).toMatchObject({ event: 'heartbeat.failed', reason: 'invalid' });
  writeFileSync(file, `${world.url}\n`);
  await world.minutesUntil(1);
  await rm(directory, { recursive: true });
});

it('no heartbeat is sent without a URL, and none once the daemon is stopping', async () => {
  await using world = await setUp();
  world.configure(undefined);
  world.emit({ type: 'scheduler.missed' });
  await world.nextMinute();
  world.configure({ url: world.url });
  world.shutdown();
  await world.nextMinute();
  expect([await world.received(), world.lines]).toEqual([[], []]);
});

it('a stopped heartbeat leaves no timer', async () => {
  await using world = await setUp();
  expect([...world.timers.values()]).toEqual([60_000]);
  world.heartbeat.stop();
  expect(world.timers.size).toBe(0);
});

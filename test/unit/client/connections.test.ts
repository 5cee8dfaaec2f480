import type { RequestListener } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Clock } from '../../../src/monitor/ports/clock.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { answering, connect, listOptions, ofType, serve } from './harness.ts';

const MINUTE = 60_000;
const ok = answering(200, '[]');

/** Starts a service that closes no idle connections and announces no limit. `connections` counts those that brought a request. */
async function start(
  listener: RequestListener,
  { isProxy = false, clock = systemClock }: { isProxy?: boolean; clock?: Clock } = {},
) {
  const { url, server, requests, sockets } = await serve(listener);
  server.keepAliveTimeout = 0;
  const addresses = isProxy
    ? { baseUrl: 'http://service.invalid', proxyUrl: url }
    : { baseUrl: url };
  const { service, events } = connect({ ...addresses, clock });
  const list = async (project = 'p') => {
    const answer = await service
      .list(project, 'prompt', listOptions())
      .catch((error: unknown) => error);
    // A connection rests for a turn after an answer, and another one would be used.
    await setImmediate();
    return answer;
  };
  const connections = () => new Set(requests.map(({ socket }) => socket)).size;
  return { events, requests, sockets, list, connections };
}

describe('a connection', () => {
  it.each([
    ['the service', false],
    ['a proxy', true],
  ])('to %s is kept between polls, but used for at most five minutes', async (_, isProxy) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { list, connections } = await start(ok, { isProxy });
    for (let minutes = 0; minutes <= 5; minutes += 1) {
      await list();
      vi.advanceTimersByTime(MINUTE);
    }
    expect(connections()).toBe(1);
    await list();
    expect(connections()).toBe(2);
  });

  it('is not used after an answer of 5xx, which disturbs no request in flight', async () => {
    let now = 0;
    const inFlight: (() => void)[] = [];
    const { list, connections, sockets } = await start(
      ({ url = '', ...request }, response) => {
        if (url.includes('slow')) inFlight.push(() => response.end('[]'));
        else answering(url.includes('bad') ? 503 : 200, '[]')(request as never, response);
      },
      { clock: { ...systemClock, monotonic: () => now } },
    );
    const slow = list('slow');
    await vi.waitFor(() => expect(inFlight).toHaveLength(1), PATIENCE);
    await list();
    await list('bad');
    await list();
    expect(connections()).toBe(2);
    now += 10_000;
    await list('bad');
    await list();
    expect(connections()).toBe(3);
    inFlight[0]?.();
    expect(await slow).toMatchObject({ unchanged: false });
    await vi.waitFor(() => expect(sockets.size).toBe(1), PATIENCE);
  });

  it('that the service closes when the next request arrives causes no retry', async () => {
    const { list, events, requests, connections } = await start((request, response) => {
      if (requests.filter(({ socket }) => socket === request.socket).length > 1) {
        request.socket.end();
      } else response.end('[]');
    });
    await list();
    await list();
    expect([requests.length, connections()]).toEqual([3, 2]);
    expect(ofType(events, 'api.request_finished').map(({ failure }) => failure)).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('that the service closes without having answered is a failure', async () => {
    const { list, requests } = await start((request) => void request.socket.end());
    expect(await list()).toMatchObject({ reason: 'network' });
    expect(requests).toHaveLength(1);
  });
});

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { answering, connect, failureOf, listOptions, RUNNING, serve } from './harness.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const BODY = JSON.stringify([{ id: 'p1', status: 'RUNNING' }]);

function projectOf(url: string | undefined): string {
  return url?.split('/')[3] ?? '';
}

describe('a failing project', () => {
  it('does not delay healthy ones, even when 10 listings and 10 prompt details hang', async () => {
    const { url, requests } = await serve((request, response) => {
      if (!projectOf(request.url).startsWith('hangs')) response.end(BODY);
    });
    const { service } = connect({ baseUrl: url, maxConcurrency: 4, timeoutMs: 60_000 });
    const hanging = Array.from({ length: 10 }, (_, index) =>
      failureOf(service.list(`hangs-${index}`, 'prompt', listOptions({ isFailing: true }))),
    );
    const details = Array.from({ length: 10 }, () =>
      failureOf(service.getErrorInfo('p', 'hangs', RUNNING)),
    );
    await vi.waitFor(() => expect(requests).toHaveLength(3), PATIENCE);
    for (let index = 0; index < 10; index += 1)
      await service.list(`well-${index}`, 'prompt', listOptions());
    expect(requests).toHaveLength(13);
    await service.close();
    await Promise.all([...hanging, ...details]);
  });

  it('does not delay the large listings of healthy ones, even when its own one stops halfway', async () => {
    const item = (n: number) => ({ id: `p${n}`, status: 'RUNNING', name: 'n'.repeat(300) });
    const large = JSON.stringify(Array.from({ length: 40_000 }, (_, n) => item(n)));
    const stopped = Promise.withResolvers<void>();
    const { url } = await serve((request, response) => {
      if (projectOf(request.url) === 'well') response.end(large);
      else response.write(large.slice(0, -1), () => stopped.resolve());
    });
    const maxResponseBytes = 64 * 1024 * 1024;
    const { service } = connect({ baseUrl: url, timeoutMs: 60_000, maxResponseBytes });
    const stops = failureOf(service.list('stops', 'prompt', listOptions({ isFailing: true })));
    await stopped.promise;
    expect(await service.list('well', 'prompt', listOptions())).toMatchObject({ size: 40_000 });
    await service.close();
    await stops;
  });

  it('is every project with a failed attempt: its retries use at most half of the slots', async () => {
    const { url, requests } = await serve((request, response) => {
      if (projectOf(request.url) === 'well') response.end(BODY);
      else if (requests.length <= 4) response.writeHead(500).end();
    });
    const { service, events } = connect({
      baseUrl: url,
      maxConcurrency: 4,
      timeoutMs: 60_000,
      retries: 1,
    });
    const failing = Array.from({ length: 4 }, (_, index) =>
      failureOf(service.list(`fails-${index}`, 'prompt', listOptions())),
    );
    await vi.waitFor(() => {
      expect(events.filter(({ type }) => type === 'api.retry_sent')).toHaveLength(2);
    }, PATIENCE);
    await service.list('well', 'prompt', listOptions());
    await service.list('well', 'prompt', listOptions());
    expect(requests).toHaveLength(8);
    await service.close();
    await Promise.all(failing);
  });

  it('releases its slot while it waits for a retry', async () => {
    const { url } = await serve((request, response) => {
      if (projectOf(request.url) === 'well') response.end(BODY);
      else answering(503, '', { 'retry-after': '2' })(request, response);
    });
    // A Retry-After holds every request with the same key.
    const key = (project: string) => ({ env: 'TEST_KEY', value: `key of ${project}` });
    const { service, events } = connect({ baseUrl: url, maxConcurrency: 1, retries: 1, key });
    const failing = failureOf(service.list('failing', 'prompt', listOptions()));
    await vi.waitFor(() => expect(events.at(-1)?.type).toBe('api.retry_scheduled'), PATIENCE);
    await service.list('well', 'prompt', listOptions());
    expect(events.some(({ type }) => type === 'api.retry_sent')).toBe(false);
    expect((await failing).reason).toBe('server_error');
  });
});

describe('the request limits', () => {
  it('allow at most maxConcurrency requests in flight', async () => {
    let inFlight = 0;
    let most = 0;
    const { url } = await serve((_, response) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      setTimeout(() => {
        inFlight -= 1;
        response.end(BODY);
      }, 5);
    });
    const { service } = connect({ baseUrl: url, maxConcurrency: 3 });
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => service.list(`p${index}`, 'prompt', listOptions())),
    );
    expect(most).toBe(3);
  });

  it('allow at most maxRequestsPerSecond listings and details together in any second', async () => {
    // On a busy machine requests arrive late and closer to each other, so this measures departures. A pause between the
    // decision to send a request and its departure does not count either: time stands still within a turn of the event loop.
    let now = performance.now();
    const turns = setInterval(() => {
      now = performance.now();
    }, 5);
    onTestFinished(() => clearInterval(turns));
    const departures: number[] = [];
    const noteDeparture = () => departures.push(now);
    subscribe('undici:client:sendHeaders', noteDeparture);
    onTestFinished(() => void unsubscribe('undici:client:sendHeaders', noteDeparture));
    const { url } = await serve((_, response) => response.end(BODY));
    const { service } = connect({
      baseUrl: url,
      maxConcurrency: 8,
      maxRequestsPerSecond: 4.5,
      clock: { ...systemClock, monotonic: () => now },
    });
    await Promise.allSettled(
      Array.from({ length: 5 }, (_, index) => [
        service.list(`p${index}`, 'prompt', listOptions()),
        service.getErrorInfo('p', `p${index}`, RUNNING),
      ]).flat(),
    );
    expect(departures).toHaveLength(10);
    for (const from of departures) {
      const inASecond = departures.filter((at) => at >= from && at < from + 1000);
      expect(inASecond.length).toBeLessThanOrEqual(4);
    }
  });
});

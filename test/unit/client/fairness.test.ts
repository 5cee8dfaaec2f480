import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
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

describe('a large listing', () => {
  const item = (n: number) => ({ id: `p${n}`, status: 'RUNNING', name: 'n'.repeat(300) });
  const large = JSON.stringify(Array.from({ length: 10_000 }, (_, n) => item(n)));

  /** Starts a service whose first project stops before the end of a large listing until it is let go, and reads that far. */
  async function stopHalfway(isFailing: boolean) {
    let left = large.length - 1;
    // What the server wrote can still wait in the kernel, where another listing overtakes it.
    const noteChunk = (message: unknown) => {
      left -= (message as { chunk: Buffer }).chunk.byteLength;
    };
    subscribe('undici:request:bodyChunkReceived', noteChunk);
    onTestFinished(() => void unsubscribe('undici:request:bodyChunkReceived', noteChunk));
    const ending = Promise.withResolvers<void>();
    const { url } = await serve((request, response) => {
      const project = projectOf(request.url);
      if (project === 'first') {
        response.write(large.slice(0, -1));
        void ending.promise.then(() => response.end(']'));
      } else response.end(project === 'small' ? BODY : large);
    });
    const maxResponseBytes = 64 * 1024 * 1024;
    const { service } = connect({ baseUrl: url, timeoutMs: 60_000, maxResponseBytes });
    const first = service.list('first', 'prompt', listOptions({ isFailing }));
    await vi.waitFor(() => expect(left).toBe(0), PATIENCE);
    return { service, first, letGo: ending.resolve };
  }

  it.each([true, false])(
    'is read after those of its class, failing %s, unless they are aborted; small ones do not wait',
    async (isFailing) => {
      const { service, first, letGo } = await stopHalfway(isFailing);
      const ending = new AbortController();
      const signal = { ...RUNNING, requests: ending.signal };
      const aborted = service.list('aborted', 'prompt', listOptions({ isFailing, signal }));
      let isRead = false;
      const next = service.list('next', 'prompt', listOptions({ isFailing })).then((answer) => {
        isRead = true;
        return answer;
      });
      await service.list('small', 'prompt', listOptions({ isFailing }));
      await sleep(300);
      ending.abort(new Error('the end'));
      await expect(aborted).rejects.toThrow('the end');
      await sleep(100);
      expect(isRead).toBe(false);
      letGo();
      expect(await first).toMatchObject({ size: 10_000 });
      expect(await next).toMatchObject({ size: 10_000 });
    },
  );

  it.each([true, false])(
    'of one class is read while one of the other stops halfway, failing %s',
    async (isFailing) => {
      const { service, first, letGo } = await stopHalfway(isFailing);
      const options = listOptions({ isFailing: !isFailing });
      expect(await service.list('next', 'prompt', options)).toMatchObject({ size: 10_000 });
      letGo();
      await first;
    },
  );
});

import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import type { Clock } from '../../../src/monitor/ports/clock.ts';
import type { Shutdown } from '../../../src/monitor/ports/service.ts';
import { answering, connect, failureOf, listOptions, ofType, serve } from './harness.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const BODY = JSON.stringify([{ id: 'p1', status: 'RUNNING' }]);
const STOPPING = new Error('stopping');
const ENDED = new Error('time is up');

function stoppable(): { signal: Shutdown; waits: AbortController; requests: AbortController } {
  const waits = new AbortController();
  const requests = new AbortController();
  return { waits, requests, signal: { waits: waits.signal, requests: requests.signal } };
}

describe('a shutdown', () => {
  it('lets a request in flight complete', async () => {
    const { waits, signal } = stoppable();
    const { url } = await serve((_, response) => {
      waits.abort(STOPPING);
      setTimeout(() => response.end(BODY), 100);
    });
    const { service } = connect({ baseUrl: url });
    expect(await service.list('p', 'prompt', listOptions({ signal }))).toMatchObject({
      unchanged: false,
    });
  });

  it('aborts the wait for a retry at once', async () => {
    const { waits, signal } = stoppable();
    const { url, requests } = await serve(answering(503, '', { 'retry-after': '9' }));
    // Only a signal ends a wait.
    const sleep: Clock['sleep'] = async (_ms, ends) => {
      if (ends) await once(ends, 'abort');
      ends?.throwIfAborted();
      await new Promise(() => {});
    };
    const clock = { ...systemClock, sleep };
    const { service, events } = connect({ baseUrl: url, retries: 1, clock });
    const call = service.list('p', 'prompt', listOptions({ signal }));
    await vi.waitFor(() => expect(ofType(events, 'api.retry_scheduled')).toHaveLength(1), PATIENCE);
    waits.abort(STOPPING);
    await expect(call).rejects.toBe(STOPPING);
    expect(requests).toHaveLength(1);
  });

  it('aborts the wait for a slot at once, and the next request still gets the slot', async () => {
    const { waits, signal } = stoppable();
    const { url, requests } = await serve(
      (_, response) => void setTimeout(() => response.end(BODY), 200),
    );
    const { service } = connect({ baseUrl: url, maxConcurrency: 1 });
    const first = service.list('a', 'prompt', listOptions());
    const second = service.list('b', 'prompt', listOptions({ signal }));
    const third = service.list('c', 'prompt', listOptions());
    await vi.waitFor(() => expect(requests).toHaveLength(1), PATIENCE);
    waits.abort(STOPPING);
    await expect(second).rejects.toBe(STOPPING);
    await Promise.all([first, third]);
    expect(requests).toHaveLength(2);
  });

  it('prevents new requests', async () => {
    const { waits, signal } = stoppable();
    waits.abort(STOPPING);
    const { url, requests } = await serve(answering(200, BODY));
    const { service } = connect({ baseUrl: url });
    await expect(service.list('p', 'prompt', listOptions({ signal }))).rejects.toBe(STOPPING);
    await expect(service.getErrorInfo('p', 'p1', signal)).rejects.toBe(STOPPING);
    expect(requests).toEqual([]);
  });

  it.each<[string, (end: () => void) => void]>([
    ['before the answer', () => {}],
    ['within the body', (write) => write()],
  ])(
    'aborts a request in flight %s when its time is up, without emitting events',
    async (_, answer) => {
      const { waits, requests, signal } = stoppable();
      const { url, sockets } = await serve((__, response) => {
        answer(() => response.writeHead(200).write('['));
        setTimeout(() => {
          waits.abort(STOPPING);
          requests.abort(ENDED);
        }, 50);
      });
      const { service, events } = connect({ baseUrl: url, retries: 3 });
      await expect(service.list('p', 'prompt', listOptions({ signal }))).rejects.toBe(ENDED);
      expect(events).toEqual([]);
      await vi.waitFor(() => expect(sockets.size).toBe(0), PATIENCE);
    },
  );

  it('does not wait for the store when the time of a request is up', async () => {
    const { requests, signal } = stoppable();
    const { url } = await serve(answering(200, BODY));
    const { service, events } = connect({ baseUrl: url });
    // So much waits for the store that no further listing is completed.
    service.storing(64 * 1024 * 1024);
    const call = service.list('p', 'prompt', listOptions({ signal }));
    await vi.waitFor(() => expect(ofType(events, 'api.responded')).toHaveLength(1), PATIENCE);
    requests.abort(ENDED);
    await expect(call).rejects.toBe(ENDED);
  });
});

describe('closing the client', () => {
  it('closes connections that were kept alive', async () => {
    const { url, server, sockets } = await serve(answering(200, BODY));
    const { service } = connect({ baseUrl: url });
    const connected = once(server, 'connection');
    await service.list('p', 'prompt', listOptions());
    await connected;
    expect(sockets.size).toBe(1);
    await service.close();
    await vi.waitFor(() => expect(sockets.size).toBe(0), PATIENCE);
  });

  it('fails requests in flight with a network error', async () => {
    const { url, requests } = await serve(() => {});
    const { service } = connect({ baseUrl: url });
    const call = failureOf(service.list('p', 'prompt', listOptions()));
    await vi.waitFor(() => expect(requests).toHaveLength(1), PATIENCE);
    await service.close();
    expect((await call).reason).toBe('network');
  });
});

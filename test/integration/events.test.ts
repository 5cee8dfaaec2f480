import { EventSource } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import {
  ON_REQUEST,
  PATIENCE,
  pollNow,
  startDaemon,
  UNHURRIED,
  workspace,
} from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { readEvents, take } from '../support/event-stream.ts';
import { startAlpha } from '../support/service.ts';

describe('the event stream', UNHURRIED, () => {
  it('delivers every event once to an EventSource across a killed and restarted daemon', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING' });
    const listen = `127.0.0.1:${await freePort()}`;
    const url = `http://${listen}`;
    await using place = await workspace(service.url, { web: { listen, enable_lifecycle: true } });
    await place.configure({ schedule: ON_REQUEST.schedule });
    await using first = startDaemon(place);
    await first.line('project.baseline');
    const source = new EventSource(`${url}/api/v1/events?type=transition`);
    await using opened = new AsyncDisposableStack();
    opened.defer(() => source.close());
    const seen: unknown[] = [];
    source.addEventListener('transition', (event) => {
      const { data } = event as unknown as { data: string };
      const { transition_id, to } = JSON.parse(data) as { transition_id: number; to: string };
      seen.push([transition_id, to]);
    });
    await vi.waitFor(() => expect(source.readyState).toBe(EventSource.OPEN), PATIENCE);
    service.set({ p1: 'RUNNING' });
    await pollNow(url);
    await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENCE);

    await first.stop('SIGKILL');
    service.set({ p1: 'FAILED' });
    await place.configure({ schedule: '* * * * * *' });
    await using second = await startHere(place);
    await second.line('prompt.failed');
    service.set({ p1: 'RUNNING' });
    await vi.waitFor(() => expect(seen).toHaveLength(3), PATIENCE);

    expect(seen).toEqual([
      [1, 'RUNNING'],
      [2, 'FAILED'],
      [3, 'RUNNING'],
    ]);
  });

  it('has each of 20 clients see an event and the end of the daemon, and answers others meanwhile', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    const url = await daemon.url();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => fetch(`${url}/api/v1/events?type=transition`)),
    );
    const streams = answers.map(({ body }) => readEvents(body));
    const firsts = streams.map((events) => take(events, 1));
    for (const path of ['/metrics', '/api/v1/transitions', '/-/healthy']) {
      expect((await fetch(url + path)).status).toBe(200);
    }
    service.set({ p1: 'RUNNING' });
    const received = (await Promise.all(firsts)).map(([event]) => event?.data['to']);
    expect(new Set(received)).toEqual(new Set(['RUNNING']));

    const ends = streams.map((events) => events.next().catch(() => ({ done: true })));
    await daemon.stop();
    expect((await Promise.all(ends)).every(({ done }) => done)).toBe(true);
  });
});

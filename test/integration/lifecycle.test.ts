import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { readHere, startHere } from '../support/daemon-here.ts';
import {
  isAlive,
  ON_REQUEST,
  PATIENCE,
  pollNow,
  startDaemon,
  timed,
  UNHURRIED,
  workspace,
} from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import {
  errorOf,
  promptDetail,
  promptItem,
  sendJson,
  startAlpha,
  startService,
} from '../support/service.ts';

/** Makes the 8 s that a stop waits for a request longer than any test may take. */
const SLOWLY = { speed: 0.01 };
const TWO = [{ id: 'alpha' }, { id: 'beta' }];

/** Starts a service that answers only by `answerAll`. */
async function startHangingService() {
  const waiting: ServerResponse[] = [];
  const service = await startService((_, response) => void waiting.push(response));
  return {
    url: service.url,
    arrivals: service.arrivals,
    arrived: (count = 1) =>
      vi.waitFor(() => expect(service.arrivals).toHaveLength(count), PATIENCE),
    answerAll: () => {
      for (const response of waiting.splice(0)) sendJson(response, [promptItem('p1', 'RUNNING')]);
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

async function statusOf(url: string, path: string): Promise<number | 'refused'> {
  return await fetch(`${url}${path}`).then(
    (answer) => answer.status,
    () => 'refused' as const,
  );
}

/** Waits until a daemon has begun to stop. */
function stopping(url: string): Promise<void> {
  return vi.waitFor(async () => expect(await statusOf(url, '/-/ready')).toBe(503), PATIENCE);
}

describe('the process of a daemon', UNHURRIED, () => {
  it('is ready once it has started, and ends in order after SIGTERM and its requests', async () => {
    await using service = await startHangingService();
    const url = `http://127.0.0.1:${await freePort()}`;
    await using place = await workspace(service.url, { web: { listen: url.slice(7) } });
    await using daemon = startDaemon(place);
    const before = new Set<number | string>();
    await vi.waitFor(async () => {
      const status = await statusOf(url, '/-/ready');
      if (status !== 200) before.add(status);
      expect(status).toBe(200);
    }, PATIENCE);
    expect([...before].filter((status) => status !== 'refused' && status !== 503)).toEqual([]);

    await service.arrived();
    daemon.process.kill('SIGTERM');
    await stopping(url);
    expect(await statusOf(url, '/-/healthy')).toBe(200);
    service.answerAll();
    expect(await daemon.ended).toEqual({ code: 0, signal: null, stderr: '' });
    expect(await statusOf(url, '/-/ready')).toBe('refused');
    const lines = daemon.lines.filter(({ event }) => event.startsWith('daemon.'));
    expect(lines).toMatchObject([
      { event: 'daemon.started', level: 'info', pid: daemon.process.pid },
      { event: 'daemon.stopped', level: 'info' },
    ]);
    for (const { time, msg } of daemon.lines) {
      expect(new Date(time).toISOString()).toBe(time);
      expect(msg).toEqual(expect.any(String));
    }
  });

  it('ends at once on a second signal', async () => {
    await using service = await startHangingService();
    await using place = await workspace(service.url);
    await using daemon = startDaemon(place);
    await service.arrived();
    daemon.process.kill('SIGINT');
    await stopping(await daemon.url());
    expect((await daemon.stop('SIGTERM')).code).toBe(143);
    expect(daemon.of('poll.failed')).toEqual([]);
  });

  it('ends by SIGTERM to the npm process that started it', async () => {
    await using service = await startService((_, response) => sendJson(response, []));
    await using place = await workspace(service.url);
    const args = ['run', '--silent', 'evalwatch', '--'];
    await using npm = startDaemon(place, { program: 'npm', args });
    const { pid } = await npm.line('daemon.started');
    expect(pid).not.toBe(npm.process.pid);
    npm.process.kill('SIGTERM');
    await npm.line('daemon.stopped');
    await npm.ended;
    await vi.waitFor(() => expect(isAlive(Number(pid))).toBe(false), PATIENCE);
  });

  it('ends on a signal without waiting for a database that does not answer', async () => {
    await using place = await workspace('http://127.0.0.1:9', {
      store: { postgres_url_file: 'address' },
    });
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    const hosts = Array.from({ length: 20 }, () => `127.0.0.1:${port}`).join();
    const address = `postgres://nobody@${hosts}/nothing?sslmode=disable`;
    await writeFile(join(place.directory, 'address'), address);
    await using daemon = startDaemon(place);
    await once(silent, 'connection');
    expect(await daemon.stop()).toEqual({ code: 0, signal: null, stderr: '' });
    expect(daemon.of('daemon.started')).toEqual([]);
    silent.close();
  });

  it('ends with exit code 1 if stdout is a full disk', async () => {
    await using place = await workspace('http://127.0.0.1:9');
    await using full = await open('/dev/full', 'w');
    await using daemon = startDaemon(place, { stdout: full.fd });
    const { code, stderr } = await daemon.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^[^\n]+\n$/);
  });

  it('ends with exit code 1 if nobody reads stdout any more, and the next one logs the failure', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    const url = `http://127.0.0.1:${await freePort()}`;
    // At this level the line of the failure is the first one, so it is the one that is lost.
    await using place = await workspace(service.url, {
      ...ON_REQUEST,
      web: { ...ON_REQUEST.web, listen: url.slice(7) },
      log: { level: 'error' },
    });
    await using daemon = startDaemon(place);
    // A prompt that is FAILED in the first stored listing is no failure.
    await vi.waitFor(
      async () => expect(await pollNow(url)).toMatchObject([{ ok: true }]),
      PATIENCE,
    );
    daemon.process.stdout?.destroy();
    service.set({ p1: 'FAILED' });
    await pollNow(url).catch(() => undefined);
    expect(await daemon.ended).toMatchObject({ code: 1, signal: null });
    expect((await readHere(place, ['failures', '--json'])).json()).toMatchObject([
      { prompt_id: 'p1', settled: false },
    ]);

    await using next = await startHere(place);
    const { transition_id: id } = await next.line('prompt.failed', { prompt_id: 'p1' });
    await next.stop();
    expect(next.of('prompt.failed')).toMatchObject([{ level: 'error', error_info: errorOf('p1') }]);
    expect((await readHere(place, ['failures', '--json'])).json()).toMatchObject([
      { prompt_id: 'p1', transition_id: id, settled: true },
    ]);
  });
});

describe('stopping the daemon', UNHURRIED, () => {
  it('waits 8 s for a request in flight and stores nothing of the aborted poll', async () => {
    await using service = await startHangingService();
    await using place = await workspace(service.url);
    const speed = 20;
    await using daemon = await startHere(place, { speed });
    await service.arrived();

    const [, ms] = await timed(daemon.stop());
    expect(ms * speed).toBeGreaterThan(7500);
    expect(daemon.lines.map(({ event }) => event)).toEqual([
      'store.created',
      'daemon.started',
      'daemon.stopped',
    ]);
    expect((await readHere(place, ['status', '--json'])).json()).toEqual([]);

    // A stored failure would make the next success a recovery, and after a stored poll none would be due.
    await place.configure({ schedule: '0 0 1 1 *' });
    await using next = await startHere(place);
    await service.arrived(2);
    service.answerAll();
    await next.line('poll.completed');
    expect(next.of('poll.recovered')).toEqual([]);
  });

  it('completes a poll whose response arrives in time', async () => {
    await using service = await startHangingService();
    await using place = await workspace(service.url);
    await using daemon = await startHere(place, SLOWLY);
    await service.arrived();
    const stopped = daemon.stop();
    await stopping(await daemon.url());
    service.answerAll();
    await stopped;
    expect(daemon.lines.map(({ event }) => event).slice(-3)).toEqual([
      'project.baseline',
      'poll.completed',
      'daemon.stopped',
    ]);
    expect(service.arrivals).toHaveLength(1);
  });

  it('leaves a failure whose error_info does not arrive to the next run', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place, { withoutGrace: true });
    await daemon.line('project.baseline');
    service.answer('p1', () => {});
    service.set({ p1: 'FAILED' });
    await vi.waitFor(() => expect(service.details()).toHaveLength(1), PATIENCE);
    await daemon.stop();
    expect(daemon.of('prompt.failed')).toEqual([]);

    service.answer('p1', (_, response) => sendJson(response, promptDetail(errorOf('p1'))));
    await using next = await startHere(place);
    const line = await next.line('prompt.failed', { prompt_id: 'p1' });
    expect(line['error_info']).toEqual(errorOf('p1'));
  });

  it('sends no request for a poll that waits for a concurrency slot', async () => {
    await using service = await startHangingService();
    const slots = { max_concurrency: 1 };
    await using place = await workspace(service.url, { service: slots, projects: TWO });
    await using daemon = await startHere(place, SLOWLY);
    await service.arrived();
    const stopped = daemon.stop();
    await stopping(await daemon.url());
    service.answerAll();
    await stopped;
    expect(service.arrivals).toHaveLength(1);
    expect(daemon.of('project.baseline')).toHaveLength(1);
    expect(daemon.of('poll.failed')).toEqual([]);
  });
});

describe('a start that fails', UNHURRIED, () => {
  it.each(['run', 'poll'])(
    'has a one-line error if %s cannot create the store',
    async (command) => {
      await using place = await workspace('http://127.0.0.1:9', {
        store: { path: '/proc/nowhere/evalwatch.db' },
      });
      const { code, stderr, stdout } = await readHere(place, [command]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toBe(
        'error: the directory /proc/nowhere for the store /proc/nowhere/evalwatch.db cannot be created (ENOENT): create it, or set store.path to another file\n',
      );
    },
  );

  it('has a one-line error and creates no store if its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address() as { port: number };
    await using place = await workspace('http://127.0.0.1:9', {
      web: { listen: `127.0.0.1:${address.port}` },
    });
    const { code, stderr, stdout } = await readHere(place, ['run']);
    other.close();
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(`^error: .* web\\.listen: .*\\b${address.port}; another program[^\\n]*\\n$`),
    );
    expect(existsSync(join(place.directory, 'evalwatch.db'))).toBe(false);
  });
});

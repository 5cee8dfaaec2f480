import { symlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { readHere, startHere } from '../support/daemon-here.ts';
import {
  ON_REQUEST,
  PATIENCE,
  pollNow,
  startDaemon,
  UNHURRIED,
  workspace,
} from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { METRICS } from '../support/metrics-table.ts';
import { scrape } from '../support/scrape.ts';
import { startAlpha } from '../support/service.ts';

/** Returns the series that outlive the process. */
async function storeSeries(url: string): Promise<Readonly<Record<string, number>>> {
  const { families } = await scrape(url);
  const names = METRICS.filter(({ from }) => from === 'store').map(({ name }) => name);
  return Object.fromEntries(names.flatMap((name) => [...(families.get(name)?.samples ?? [])]));
}

describe('a restart', UNHURRIED, () => {
  it('after a kill, and after a stop, changes no series that comes from the store', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING', p2: 'RUNNING', p3: 'RUNNING', p4: 'paused' });
    await using place = await workspace(service.url, ON_REQUEST);
    await using first = startDaemon(place);
    const url = await first.url();
    await first.line('project.baseline');
    service.set({ p1: 'RUNNING', p2: 'FAILED', p5: 'PENDING' });
    expect(await pollNow(url)).toMatchObject([{ ok: true }]);
    await first.line('prompt.failed');
    const before = await vi.waitFor(async () => {
      const seen = await storeSeries(url);
      expect(seen['evalwatch_error_info_backlog']).toBe(0);
      return seen;
    }, PATIENCE);
    expect(before).toMatchObject({
      'evalwatch_project_up{project="alpha"}': 1,
      'evalwatch_poll_last_success_timestamp_seconds{project="alpha"}': expect.any(Number),
      'evalwatch_prompts{project="alpha",status="UNKNOWN"}': 1,
      'evalwatch_prompt_transitions_total{project="alpha",from="RUNNING",to="FAILED"}': 1,
      'evalwatch_prompt_transitions_total{project="alpha",from="NEW",to="PENDING"}': 1,
      'evalwatch_prompt_last_failure_timestamp_seconds{project="alpha"}': expect.any(Number),
    });
    await first.stop('SIGKILL');

    for (let restarts = 0; restarts < 2; restarts += 1) {
      await using next = await startHere(place, { speed: 1 });
      expect(await storeSeries(await next.url())).toEqual(before);
      await next.stop();
      expect([...next.of('store.created'), ...next.of('project.baseline')]).toEqual([]);
    }
  });
});

describe('a store in use by a daemon', UNHURRIED, () => {
  it('cannot be opened by a second daemon, not even by a link; its error names the first', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await using first = await startHere(place);
    await first.line('poll.completed');
    await symlink(join(place.directory, 'evalwatch.db'), join(place.directory, 'other.db'));
    await place.configure({ store: { path: 'other.db' } });

    await using second = startDaemon(place);
    const { code, stderr } = await second.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^[^\n]+\n$/);
    expect(stderr).toContain(hostname());
    expect(stderr).toMatch(new RegExp(`\\b${process.pid}\\b`));
    expect(second.of('daemon.started')).toEqual([]);
    expect((await fetch(`${await first.url()}/-/ready`)).status).toBe(200);
  });

  it('can be read by the read-only commands, which need no API key', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING', p2: 'PENDING' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ p1: 'FAILED' });
    await daemon.line('prompt.failed');
    await place.configure({ service: { api_key_file: 'no-such-key' } });

    for (const [command, rows] of [
      [
        'status',
        [
          { prompt_id: 'p1', status: 'FAILED' },
          { prompt_id: 'p2', status: 'PENDING' },
        ],
      ],
      ['transitions', [{ prompt_id: 'p1', from: 'RUNNING', to: 'FAILED' }]],
      ['failures', [{ prompt_id: 'p1' }]],
    ] as const) {
      const { code, json } = await readHere(place, [command, '--json']);
      expect(code).toBe(0);
      expect(json()).toMatchObject(rows);
    }
  });

  it('cannot be used by the poll command, whose error names the request to poll instead', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    const listen = `127.0.0.1:${await freePort()}`;
    await using place = await workspace(service.url, {
      ...ON_REQUEST,
      web: { ...ON_REQUEST.web, listen },
    });
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ p1: 'COMPLETED' });

    const { code, stderr } = await readHere(place, ['poll', '--project', 'alpha']);
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`\\b${process.pid}\\b`));
    const [, url = ''] = /curl -X POST '(.*)'/.exec(stderr) ?? [];
    const answer = await fetch(url, { method: 'POST' });

    expect(answer.status).toBe(200);
    const row = { project: 'alpha', ok: true, reason: null, prompts: 1, transitions: 1 };
    expect(await answer.json()).toMatchObject({ polled: [row], pending: 0 });
    await daemon.line('prompt.transition', { from: 'RUNNING', to: 'COMPLETED' });
    const unknown = await fetch(url.replace('alpha', 'beta'), { method: 'POST' });
    expect(unknown.status).toBe(404);
  });
});

import { symlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readHere, startHere } from '../support/daemon-here.ts';
import { startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { startAlpha } from '../support/service.ts';

describe('a store in use by a daemon', UNHURRIED, () => {
  it.each([
    ['', 'evalwatch.db'],
    [' through a symlink', 'other.db'],
  ])('cannot be opened by a second daemon%s, whose error names the first', async (_, path) => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await using first = await startHere(place);
    await first.line('poll.completed');
    await symlink(join(place.directory, 'evalwatch.db'), join(place.directory, 'other.db'));
    await place.configure({ store: { path } });

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

    const [status, transitions, failures] = await Promise.all([
      readHere(place, ['status', '--json']),
      readHere(place, ['transitions', '--json']),
      readHere(place, ['failures', '--json']),
    ]);
    for (const { code } of [status, transitions, failures]) expect(code).toBe(0);
    expect(status.json()).toMatchObject([
      { project: 'alpha', prompt_id: 'p1', status: 'FAILED' },
      { project: 'alpha', prompt_id: 'p2', status: 'PENDING' },
    ]);
    expect(transitions.json()).toMatchObject([{ prompt_id: 'p1', from: 'RUNNING', to: 'FAILED' }]);
    expect(failures.json()).toMatchObject([{ prompt_id: 'p1' }]);
  });

  it('cannot be used by the poll command, whose error names the request to poll instead', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    const listen = `127.0.0.1:${await freePort()}`;
    await using place = await workspace(service.url, {
      schedule: '0 0 1 1 *',
      web: { listen, enable_lifecycle: true },
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

  it('can be opened again after the daemon is killed', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    await using place = await workspace(service.url);
    await using first = startDaemon(place);
    await first.line('project.baseline');
    await first.stop('SIGKILL');
    service.set({ p1: 'COMPLETED' });
    await using second = await startHere(place);
    await second.line('prompt.transition', { from: 'RUNNING', to: 'COMPLETED' });
    expect(second.of('store.created')).toEqual([]);
  });
});

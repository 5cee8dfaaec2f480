import { expect, it } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { evalwatch, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { startAlpha } from '../support/service.ts';

it('beside a daemon, poll names a request by which the daemon polls', UNHURRIED, async () => {
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

  const { code, stderr } = await evalwatch(place, ['poll', '--project', 'alpha']);
  expect(code).toBe(1);
  const [, url = ''] = /curl -X POST '(.*)'/.exec(stderr) ?? [];
  const answer = await fetch(url, { method: 'POST' });

  expect(answer.status).toBe(200);
  const row = { project: 'alpha', ok: true, reason: null, prompts: 1, transitions: 1 };
  expect(await answer.json()).toMatchObject({ polled: [row], pending: 0 });
  await daemon.line('prompt.transition', { from: 'RUNNING', to: 'COMPLETED' });
  const unknown = await fetch(url.replace('alpha', 'beta'), { method: 'POST' });
  expect(unknown.status).toBe(404);
});

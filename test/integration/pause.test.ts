import { expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { PATIENCE, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { startAlpha } from '../support/service.ts';

const PAUSED = 'evalwatch_project_paused{project="alpha"}';

it.each([
  { paused: true },
  // A minute of maintenance in every minute.
  { maintenance: [{ cron: '* * * * *', duration: '1m' }] },
])(
  'a project with %j is not polled, shows what it knew, and is polled after it',
  UNHURRIED,
  async (pause) => {
    await using service = await startAlpha();
    service.set({ a: 'COMPLETED' });
    await using place = await workspace(service.url, { web: { enable_lifecycle: true } });
    await using daemon = await startHere(place);
    const url = await daemon.url();
    await daemon.line('project.baseline');

    await place.configure({ projects: [{ id: 'alpha', ...pause }] });
    await daemon.reload();
    expect((await scrape(url)).value(PAUSED)).toBe(1);
    const refused = await fetch(`${url}/-/poll?project=alpha`, { method: 'POST' });
    expect([refused.status, await refused.json()]).toEqual([
      409,
      { error: 'project "alpha" is paused' },
    ]);
    const all = await fetch(`${url}/-/poll`, { method: 'POST' });
    expect([all.status, await all.text()]).toEqual([409, expect.stringContaining('are paused')]);
    const { data } = (await (await fetch(`${url}/api/v1/projects`)).json()) as { data: object[] };
    expect(data).toMatchObject([{ up: true, pause: { polls: 'stop' }, prompts: { COMPLETED: 1 } }]);
    expect(await (await fetch(`${url}/projects/alpha`)).text()).toContain('Paused');
    const { length } = service.arrivals;
    service.set({ a: 'FAILED' });
    await new Promise((resolve) => {
      setTimeout(resolve, 500);
    });
    expect(service.arrivals).toHaveLength(length);

    await place.configure({ projects: [{ id: 'alpha' }] });
    await daemon.reload();
    await daemon.line('prompt.transition', { to: 'FAILED' });
    await daemon.line('project.resumed', { project: 'alpha', transitions: 1 });
    await vi.waitFor(
      async () => expect((await scrape(url)).value(PAUSED)).toBeUndefined(),
      PATIENCE,
    );
  },
);

it('a project in maintenance with polls that continue is polled', UNHURRIED, async () => {
  await using service = await startAlpha();
  const maintenance = [{ cron: '* * * * *', duration: '1m', polls: 'continue' }];
  await using place = await workspace(service.url);
  await place.configure({ maintenance });
  await using daemon = await startHere(place);
  await daemon.line('project.baseline');
  expect((await scrape(await daemon.url())).value(PAUSED)).toBe(1);
});

import { expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { ON_REQUEST, PATIENCE, pollNow, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { promptItem, sendJson, startService } from '../support/service.ts';

const INTERVAL = 'evalwatch_project_schedule_max_interval_seconds{project="alpha"}';

it(
  'a project is polled by its idle schedule while none of its prompts is unfinished',
  UNHURRIED,
  async () => {
    let [status, isDown] = ['COMPLETED', false];
    await using service = await startService((_, response) => {
      if (isDown) response.writeHead(500).end();
      else sendJson(response, [promptItem('a', status)]);
    });
    await using place = await workspace(service.url, {
      ...ON_REQUEST,
      service: { base_url: service.url, api_key_file: 'key', retries: 0 },
      schedule: '* * * * * *',
      idle_schedule: '0 0 1 1 *',
    });
    const interval = async (url: string) => (await scrape(url)).value(INTERVAL);
    const isBusy = (url: string) =>
      vi.waitFor(async () => expect(await interval(url)).toBe(1), PATIENCE);
    const isIdle = (url: string) =>
      vi.waitFor(async () => expect(await interval(url)).toBeGreaterThan(1e7), PATIENCE);
    {
      await using daemon = await startHere(place);
      const url = await daemon.url();
      await daemon.line('project.baseline');
      await isIdle(url);
      expect(await (await fetch(url)).text()).toContain('(idle schedule)');

      // Nothing but a request finds the prompt that runs; then the ordinary schedule sees it end.
      status = 'RUNNING';
      await pollNow(url);
      await isBusy(url);
      const before = service.arrivals.length;
      await vi.waitFor(() => expect(service.arrivals.length).toBeGreaterThan(before + 2), PATIENCE);
      status = 'COMPLETED';
      await daemon.line('prompt.transition', { to: 'COMPLETED' });
      await isIdle(url);

      // A project that is down is polled by its ordinary schedule until it is up again.
      isDown = true;
      await pollNow(url);
      await isBusy(url);
      isDown = false;
      await isIdle(url);
      await daemon.stop();
    }
    // It stays idle over a restart.
    const { length } = service.arrivals;
    await using next = await startHere(place);
    await isIdle(await next.url());
    expect(service.arrivals).toHaveLength(length);
  },
);

import { open } from 'node:fs/promises';
import { describe, expect, it, vi } from 'vitest';
import { readHere, startHere } from '../support/daemon-here.ts';
import { PATIENCE, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { freePort } from '../support/free-port.ts';
import { scrape } from '../support/scrape.ts';
import { errorOf, startAlpha } from '../support/service.ts';

describe('an unwritable stdout', UNHURRIED, () => {
  it('ends the daemon with exit code 1 if the disk is full', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await using full = await open('/dev/full', 'w');
    await using daemon = startDaemon(place, { stdout: full.fd });
    const { code, stderr } = await daemon.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^[^\n]+\n$/);
  });

  it('ends the daemon with exit code 1 if its reader is gone, and the next run logs the failure', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'RUNNING' });
    const listen = `127.0.0.1:${await freePort()}`;
    // At this level the line of the failure is the first one, so it is the one that is lost.
    await using place = await workspace(service.url, { web: { listen }, log: { level: 'error' } });
    await using daemon = startDaemon(place);
    // A prompt that is FAILED in the first stored listing is no failure, and a first poll can fail on a slow machine.
    await vi.waitFor(async () => {
      const scraped = await scrape(`http://${listen}`);
      expect(scraped.value('evalwatch_prompts', { project: 'alpha', status: 'RUNNING' })).toBe(1);
    }, PATIENCE);
    daemon.process.stdout?.destroy();
    service.set({ p1: 'FAILED' });
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

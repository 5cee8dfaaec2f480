import { rm, writeFile } from 'node:fs/promises';
import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { KEY, PATIENCE, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { sendJson, startAlpha, startService } from '../support/service.ts';

/** Waits for these words. Returns the page as text. */
async function pageThatSays(url: string, words: RegExp): Promise<string> {
  return await vi.waitFor(async () => {
    const text = await (await fetch(url)).text();
    const plain = text.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ');
    expect(plain).toMatch(words);
    return plain;
  }, PATIENCE);
}

describe('the status page of a daemon', UNHURRIED, () => {
  it('shows a failure with its error_info but not the key in it, and why a project is down', async () => {
    await using service = await startAlpha();
    service.set({ steady: 'RUNNING', failing: 'RUNNING' });
    service.answer('failing', (_arrival, response) => {
      sendJson(response, { error_info: { error_id: KEY, error_msg: `your key is ${KEY}` } });
    });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    const url = await daemon.url();
    await daemon.line('project.baseline');
    await pageThatSays(url, /evalwatch (?:is healthy and )?monitors every project/);

    service.set({ failing: 'FAILED' });
    const shown = [
      await pageThatSays(url, /error_id \S*redacted\S* error_msg your key is/),
      await pageThatSays(`${url}/projects/alpha`, /1 failure in the last 24 hours/),
      await pageThatSays(`${url}/projects/alpha`, /your key is/),
    ];
    expect(shown.join('')).not.toContain(KEY);

    await writeFile(`${place.directory}/key`, 'short');
    const blind = await pageThatSays(url, /1 of 1 project not monitored/);
    expect(blind).toMatch(/Down: there is no API key to send: its file or variable cannot be read/);
  });

  it('distinguishes a refused API key from a missing one, until a restart', async () => {
    await using service = await startService(({ headers }, response) => {
      const isGood = headers['x-api-key'] === KEY;
      sendJson(response, isGood ? [] : { detail: 'no' }, isGood ? 200 : 401);
    });
    await using place = await workspace(service.url);
    await rm(`${place.directory}/key`);
    await using daemon = await startHere(place);
    const url = await daemon.url();
    await pageThatSays(url, /Down: there is no API key to send: .* does not hold a key\. auth/);
    const [failed] = daemon.of('poll.failed');
    expect(failed).toMatchObject({
      reason: 'auth',
      err: {
        message: expect.stringMatching(/the key file .*key cannot be read: there is no such file/),
      },
    });
    expect(failed).not.toHaveProperty('status_code');

    await writeFile(`${place.directory}/key`, 'long enough but wrong');
    await pageThatSays(url, /Down: the service refuses the API key \(401 or 403\)\. auth/);

    // The store keeps only that the reason was `auth`.
    await daemon.stop();
    await place.configure({ schedule: '0 0 1 1 *' });
    await using next = await startHere(place);
    const afterwards = await pageThatSays(await next.url(), /Down/);
    expect(afterwards).toMatch(/the service refuses the API key, or the key cannot be read\. auth/);
  });

  it('shows that the last reload failed, and why', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    const url = await daemon.url();
    await daemon.line('project.baseline');

    await place.configure({ schedule: 'never' });
    await daemon.reload();

    const page = await pageThatSays(url, /the last reload failed/);
    expect(page).toMatch(/the previous configuration stays in force .*schedule/);
  });
});

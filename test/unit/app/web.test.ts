import { expect, it, vi } from 'vitest';
import { startWeb, type WebOptions } from '../../../src/app/web.ts';
import type { Metrics } from '../../../src/metrics/metrics.ts';
import { ask } from '../../support/ask.ts';

/** Starts the web server of a daemon whose limits are learned when `learning` resolves. */
async function startLearning(learning: Promise<void>) {
  const late = vi.fn<() => void>();
  const render = vi.fn<Metrics['render']>(() => Promise.resolve([Buffer.from('metrics')]));
  const server = await startWeb({
    config: { web: { host: '127.0.0.1', port: 0 }, store: { retentionMs: 1 } },
    engine: {
      config: () => ({ web: { allowedHosts: [] } }),
      expectations: { of: () => undefined, refresh: () => learning },
    },
    metrics: { render, contentType: 'text/plain' },
    clock: {
      timeout: (_ms: number, run: () => void) => {
        late.mockImplementation(run);
        return { unref: () => {} };
      },
    },
    isScheduling: () => true,
  } as unknown as WebOptions);
  const scrape = async () => (await ask(`${server.url}/metrics`)).text;
  const probe = async () => (await ask(`${server.url}/-/healthy`)).status;
  return { late, render, scrape, probe, [Symbol.asyncDispose]: () => server.close() };
}

it('the first scrapes wait until the limits are learned', async () => {
  const learned = Promise.withResolvers<void>();
  await using web = await startLearning(learned.promise);
  const first = web.scrape();
  // The scrape was received before this probe is answered.
  expect(await web.probe()).toBe(200);
  expect(web.render).not.toHaveBeenCalled();
  learned.resolve();
  expect([await first, await web.scrape()]).toEqual(['metrics', 'metrics']);
});

it('the first scrapes do not wait longer than allowed', async () => {
  await using web = await startLearning(new Promise(() => {}));
  const first = web.scrape();
  web.late();
  expect(await first).toBe('metrics');
});

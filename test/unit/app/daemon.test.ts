import { expect, it, vi } from 'vitest';
import { learnFirst } from '../../../src/app/maintenance.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { ask } from '../../support/ask.ts';
import { startHere } from '../../support/daemon-here.ts';
import { workspace } from '../../support/evalwatch.ts';

vi.mock(import('../../../src/app/maintenance.ts'), async (original) => ({
  ...(await original()),
  learnFirst: vi.fn<typeof learnFirst>(),
}));

it('the first scrapes of a daemon wait until the limits are learned', async () => {
  const learned = Promise.withResolvers<void>();
  vi.mocked(learnFirst).mockReturnValue(learned.promise);
  await using space = await workspace('http://127.0.0.1:1');
  await using daemon = await startHere(space);
  const url = await daemon.url();
  const render = vi.spyOn(Metrics.prototype, 'render');
  const scraped = ask(`${url}/metrics`);
  // The scrape was received before this probe is answered.
  expect((await ask(`${url}/-/healthy`)).status).toBe(200);
  expect(render).not.toHaveBeenCalled();
  learned.resolve();
  expect((await scraped).text).toContain('evalwatch_build_info');
});

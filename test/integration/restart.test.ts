import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { type DaemonHere, readHere, startHere } from '../support/daemon-here.ts';
import { PATIENCE, sleep, startDaemon, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { METRICS } from '../support/metrics-table.ts';
import { scrape, type Scrape } from '../support/scrape.ts';
import { startAlpha } from '../support/service.ts';

const RARELY = '0 0 1 1 *';

/** Returns the series that outlive the process. */
function storeSeries({ families }: Scrape): Readonly<Record<string, number>> {
  const names = METRICS.filter(({ from }) => from === 'store').map(({ name }) => name);
  return Object.fromEntries(names.flatMap((name) => [...(families.get(name)?.samples ?? [])]));
}

const HOUR = 60 * 60 * 1000;

/** Returns a daily schedule whose next run comes in `ms`. */
function dailyIn(ms: number): string {
  const time = new Date(Date.now() + ms);
  return `${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
}

describe('a restart', UNHURRIED, () => {
  it('changes no series that comes from the store', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING', p2: 'RUNNING', p3: 'RUNNING', p4: 'paused' });
    await using place = await workspace(service.url);
    await using daemon = await startHere(place);
    await daemon.line('project.baseline');
    service.set({ p1: 'RUNNING', p2: 'FAILED', p5: 'PENDING' });
    await daemon.line('prompt.failed');
    const url = await daemon.url();
    const running = await vi.waitFor(async () => {
      const seen = await scrape(url);
      expect(seen.value('evalwatch_error_info_backlog')).toBe(0);
      return storeSeries(seen);
    }, PATIENCE);
    await daemon.stop();
    await place.configure({ schedule: RARELY });

    await using second = startDaemon(place);
    const before = storeSeries(await scrape(await second.url()));
    await second.stop('SIGKILL');
    await using third = await startHere(place);
    const after = storeSeries(await scrape(await third.url()));
    expect(after).toEqual(before);
    // One more poll may have run before the stop.
    const lastSuccess = 'evalwatch_poll_last_success_timestamp_seconds{project="alpha"}';
    expect(before).toEqual({ ...running, [lastSuccess]: expect.any(Number) });
    expect(after).toMatchObject({
      'evalwatch_project_up{project="alpha"}': 1,
      'evalwatch_poll_last_success_timestamp_seconds{project="alpha"}': expect.any(Number),
      'evalwatch_prompts{project="alpha",status="UNKNOWN"}': 1,
      'evalwatch_prompt_transitions_total{project="alpha",from="RUNNING",to="FAILED"}': 1,
      'evalwatch_prompt_transitions_total{project="alpha",from="NEW",to="PENDING"}': 1,
      'evalwatch_prompt_last_failure_timestamp_seconds{project="alpha"}': expect.any(Number),
    });
    expect(third.of('project.baseline')).toEqual([]);
  });

  it.each([8_640_000_000_000_001, -9_000_000_000_000_000])(
    'polls even if the store has a last poll at a time that no calendar has (%d)',
    async (at) => {
      await using service = await startAlpha();
      service.set({ p1: 'PENDING' });
      await using place = await workspace(service.url);
      await using daemon = await startHere(place);
      await daemon.line('project.baseline');
      await daemon.stop();
      service.set({ p1: 'RUNNING' });
      const db = new Database(join(place.directory, 'evalwatch.db'));
      db.prepare('UPDATE project SET last_poll_at = ?, last_success_at = ?').run(at, at);
      db.close();

      await using next = await startHere(place);

      expect(await next.line('prompt.transition')).toMatchObject({ prompt_id: 'p1' });
    },
  );

  it('keeps the failure of the last poll and its reason', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    await writeFile(join(place.directory, 'key'), 'short');
    const failing = async (daemon: DaemonHere) => {
      const { samples } = await scrape(await daemon.url());
      return [...samples].filter(([name]) => name.startsWith('evalwatch_project_poll_failing'));
    };
    const forItsKey = [['evalwatch_project_poll_failing{project="alpha",reason="auth"}', 1]];
    await using daemon = await startHere(place);
    await daemon.line('poll.failed');
    expect(await failing(daemon)).toEqual(forItsKey);
    await daemon.stop();

    await place.configure({ schedule: RARELY });
    await using next = await startHere(place);
    expect(await failing(next)).toEqual(forItsKey);
    expect(next.of('poll.failed')).toEqual([]);
  });

  it('reports a failure that happened in between exactly once', async () => {
    await using service = await startAlpha();
    service.set({ p1: 'PENDING' });
    await using place = await workspace(service.url);
    await using earlier = await startHere(place);
    await earlier.line('project.baseline');
    await earlier.stop();
    service.set({ p1: 'FAILED' });
    for (let run = 0; run < 2; run += 1) {
      await using daemon = await startHere(place);
      const url = await daemon.url();
      await vi.waitFor(async () => {
        const polls = (await scrape(url)).value('evalwatch_polls_total', { project: 'alpha' });
        expect(polls).toBeGreaterThan(1);
      }, PATIENCE);
      if (run === 0) await daemon.line('prompt.failed');
      await daemon.stop();
      expect(daemon.of('prompt.failed')).toHaveLength(run === 0 ? 1 : 0);
      expect(daemon.of('prompt.transition')).toHaveLength(run === 0 ? 1 : 0);
    }
    expect((await readHere(place, ['transitions', '--json'])).json()).toMatchObject([
      { prompt_id: 'p1', from: 'PENDING', to: 'FAILED' },
    ]);
  });

  it('polls at once only projects that were never polled or have come due meanwhile', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url, { schedule: dailyIn(HOUR) });
    const run = async (aheadMs: number, meanwhile: () => Promise<unknown>) => {
      await using daemon = await startHere(place, { aheadMs });
      await daemon.line('daemon.started');
      await meanwhile();
      await daemon.stop();
    };
    const polls = (count: number) => () =>
      vi.waitFor(() => expect(service.arrivals).toHaveLength(count), PATIENCE);
    // Never polled, though not due for an hour.
    await run(0, polls(1));
    // Not due yet.
    await run(HOUR / 2, () => sleep(700));
    expect(service.arrivals).toHaveLength(1);
    // Came due while nothing ran.
    await run(2 * HOUR, polls(2));
    // Due tomorrow.
    await run(3 * HOUR, () => sleep(700));
    expect(service.arrivals).toHaveLength(2);
  });
});

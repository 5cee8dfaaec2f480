import { describe, expect, it, vi } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { PATIENCE, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { sendJson, startService } from '../support/service.ts';

const SECRET = '5ecret-5ecret-5ecret';
/** A minute takes a second. */
const FAST = { speed: 60 };
const POLLS_PER_MINUTE = 3;
const SCHEDULE = '*/20 * * * * *';

describe('the heartbeat', UNHURRIED, () => {
  it('is sent if polls complete or fail, not while one hangs, and again once its project is removed', async () => {
    let mode: 'good' | 'failing' | 'hanging' = 'good';
    await using service = await startService(({ project }, response) => {
      if (mode === 'good' || project !== 'alpha') sendJson(response, []);
      else if (mode === 'failing') sendJson(response, {}, 500);
    });
    await using monitor = await startService((_, response) => sendJson(response, 'ok'));
    await using place = await workspace(service.url, {
      service: { retries: 0 },
      schedule: SCHEDULE,
      projects: [{ id: 'alpha' }, { id: 'beta' }],
      heartbeat: { url: `${monitor.url}/${SECRET}` },
    });
    await using daemon = await startHere(place, FAST);
    const more = async () => {
      const before = monitor.arrivals.length;
      await vi.waitFor(() => expect(monitor.arrivals.length).toBeGreaterThan(before + 1), PATIENCE);
    };
    /** Waits for so many polls of the project that never hangs. */
    const minutes = async (count: number) => {
      const polls = service.of('beta').length + count * POLLS_PER_MINUTE;
      await vi.waitFor(
        () => expect(service.of('beta').length).toBeGreaterThanOrEqual(polls),
        PATIENCE,
      );
    };
    await more();
    mode = 'failing';
    await daemon.line('poll.failed');
    await more();

    mode = 'hanging';
    // What was sent before has arrived by then.
    await minutes(2);
    const { length } = monitor.arrivals;
    await minutes(3);
    expect(monitor.arrivals.length).toBe(length);
    // A busy machine can make it withhold an earlier one too, and a reason is logged once.
    await daemon.line('heartbeat.withheld', { level: 'warn', reason: 'skipped' });

    const url = await daemon.url();
    const pages = await Promise.all(
      ['/', '/metrics', '/api/v1/projects', '/projects/alpha'].map(async (path) =>
        (await fetch(url + path)).text(),
      ),
    );
    expect([...new Set(monitor.arrivals.map(({ path }) => path))]).toEqual([`/${SECRET}`]);
    expect(monitor.arrivals.some(({ headers }) => 'x-api-key' in headers)).toBe(false);
    expect([daemon.stdout(), ...pages].join('')).not.toContain(SECRET);

    await place.configure({ projects: [{ id: 'beta' }] });
    await daemon.reload();
    await more();
  });

  it('follows a reload and logs repeated failures once', async () => {
    await using service = await startService((_, response) => sendJson(response, []));
    await using monitor = await startService(({ path }, response) =>
      sendJson(response, 'answer', path === '/good' ? 200 : 404),
    );
    await using place = await workspace(service.url, { schedule: SCHEDULE });
    await using daemon = await startHere(place, FAST);
    await daemon.line('project.baseline');
    await place.configure({ heartbeat: { url: `${monitor.url}/bad` } });
    await daemon.reload();
    await daemon.line('heartbeat.failed', { level: 'warn', reason: 'client_error' });
    expect(await daemon.line('config.reloaded')).toMatchObject({ sections: ['heartbeat'] });
    const arrived = (path: string) => monitor.arrivals.filter((each) => each.path === path).length;
    await vi.waitFor(() => expect(arrived('/bad')).toBeGreaterThan(3), PATIENCE);
    expect(daemon.of('heartbeat.failed')).toHaveLength(1);

    await place.configure({ heartbeat: { url: `${monitor.url}/good` } });
    await daemon.reload();
    await vi.waitFor(() => expect(arrived('/good')).toBeGreaterThan(1), PATIENCE);
  });
});

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createSystemd } from '../../../src/app/systemd.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

const READY_AGAIN_MS = 5000;

/** Records its argument, and fails until its `.works` file exists. */
const NOTIFIER = `#!/bin/sh
echo "$1" >> "$0.calls"
[ -e "$0.works" ]
`;

// The programs take real time.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** Stubs `systemd-notify` by a program that fails until it is healed. */
function setUp(env: Readonly<Record<string, string>> = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'evalwatch-systemd-'));
  const notifier = join(directory, 'systemd-notify');
  writeFileSync(notifier, NOTIFIER);
  chmodSync(notifier, 0o755);
  const warnings: unknown[] = [];
  const systemd = createSystemd(
    { NOTIFY_SOCKET: '/nowhere', PATH: directory, ...env },
    { warn: (fields: unknown) => warnings.push(fields) },
  );
  const calls = () => {
    const file = `${notifier}.calls`;
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  };
  return {
    systemd,
    warnings,
    heal: () => writeFileSync(`${notifier}.works`, ''),
    calls,
    /** Lets time pass until the notifier was called `count` times. */
    called: (count: number) =>
      vi.waitFor(async () => {
        await vi.advanceTimersByTimeAsync(READY_AGAIN_MS);
        expect(calls().length).toBeGreaterThanOrEqual(count);
      }, PATIENCE),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true }),
  };
}

it('READY=1 is repeated until systemd-notify succeeds, also without a watchdog', async () => {
  using world = setUp();
  world.systemd.ready();
  await world.called(2);
  expect(new Set(world.calls())).toEqual(new Set(['READY=1']));
  expect(world.warnings).toMatchObject([{ event: 'systemd.notify_failed' }]);
});

it('READY=1 is not repeated once systemd-notify has succeeded', async () => {
  // A ping every 10 ms.
  using world = setUp({ WATCHDOG_USEC: '30000' });
  const count = (state: string) => world.calls().filter((call) => call === state).length;
  /** Waits for pings. The programs run one after the other, so those before the last ping have ended. */
  const pinged = async () => {
    const before = count('WATCHDOG=1');
    await vi.waitFor(() => expect(count('WATCHDOG=1')).toBeGreaterThan(before + 1), PATIENCE);
  };
  world.heal();
  world.systemd.ready();
  await pinged();
  await vi.advanceTimersByTimeAsync(10 * READY_AGAIN_MS);
  await pinged();
  expect(count('READY=1')).toBe(1);
  expect(world.warnings).toEqual([]);
  world.systemd.stopping();
  await vi.waitFor(() => expect(count('STOPPING=1')).toBe(1), PATIENCE);
});

it.each([
  ['while systemd-notify runs', 0],
  ['during the pause before the repetition', 1],
])('READY=1 is not repeated if the daemon stops %s', async (_, failures) => {
  using world = setUp();
  world.systemd.ready();
  // The warning comes before the pause. Timers are not counted: other files of this process may leave some.
  await vi.waitFor(() => expect(world.warnings.length).toBe(failures), PATIENCE);
  world.systemd.stopping();
  await world.called(2);
  await vi.advanceTimersByTimeAsync(10 * READY_AGAIN_MS);
  expect(world.calls()).toEqual(['READY=1', 'STOPPING=1']);
});

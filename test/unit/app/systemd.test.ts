import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { notifySystemd } from '../../../src/app/systemd.ts';
import { PATIENCE } from '../../support/evalwatch.ts';

/** Records its argument, and fails until its `.works` file exists. */
const NOTIFIER = `#!/bin/sh
echo "$1" >> "$0.calls"
[ -e "$0.works" ]
`;

/**
 * Stubs `systemd-notify` by a program that fails unless it `works`, and starts notifying it. The time between two programs passes
 * faster by `speed`.
 */
function start({ env = {}, works = false, speed = 1000 } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'evalwatch-systemd-'));
  const notifier = join(directory, 'systemd-notify');
  writeFileSync(notifier, NOTIFIER);
  chmodSync(notifier, 0o755);
  if (works) writeFileSync(`${notifier}.works`, '');
  const warnings: unknown[] = [];
  const stop = notifySystemd(
    { NOTIFY_SOCKET: '/nowhere', PATH: directory, ...env },
    { warn: (fields: unknown) => warnings.push(fields) },
    { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / speed, signal) },
  );
  const calls = () => {
    const file = `${notifier}.calls`;
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  };
  return {
    stop,
    warnings,
    calls,
    /** Waits until systemd was notified `count` times. */
    called: (count: number) =>
      vi.waitFor(() => expect(calls().length).toBeGreaterThanOrEqual(count), PATIENCE),
    /** Stops, and waits until systemd knows. */
    [Symbol.asyncDispose]: async () => {
      stop();
      await vi.waitFor(() => expect(calls().at(-1)).toBe('STOPPING=1'), PATIENCE);
      rmSync(directory, { recursive: true });
    },
  };
}

it('READY=1 is repeated until systemd-notify succeeds, also without a watchdog', async () => {
  await using world = start();
  await world.called(3);
  expect(new Set(world.calls())).toEqual(new Set(['READY=1']));
  expect(world.warnings).toMatchObject([{ event: 'systemd.notify_failed' }]);
});

it.each([
  ['while systemd-notify runs', 0],
  ['during the pause before the repetition', 1],
])('READY=1 is not repeated if the daemon stops %s', async (_, failures) => {
  await using world = start({ speed: 1 });
  // The warning comes before the pause.
  await vi.waitFor(() => expect(world.warnings.length).toBe(failures), PATIENCE);
  world.stop();
  await world.called(2);
  expect(world.calls()).toEqual(['READY=1', 'STOPPING=1']);
});

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { debianTool, IN_CI } from '../../support/debian-tool.ts';

const path = fileURLToPath(new URL('../../../config/systemd/evalwatch.service', import.meta.url));
const unit = readFileSync(path, 'utf8');
/** Maximum exposure by systemd-analyze, of 10. The unit has 1.4 with systemd 252, and more where checks are added. */
const MOST_EXPOSURE = 2;

const analyze = debianTool('systemd', 'systemd-analyze') ?? '';
if (analyze === '') console.warn('no systemd-analyze here: the unit was not verified');

const setting = (name: string) => unit.match(new RegExp(`^${name}=(.*)$`, 'm'))?.[1];

describe.skipIf(analyze === '' && !IN_CI)('the systemd unit', () => {
  it('passes systemd-analyze verify', () => {
    const { status, stdout, stderr } = spawnSync(analyze, ['verify', path], { encoding: 'utf8' });
    // On the test machine Node may not be where the unit expects it.
    const complaints = `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line !== '' && !line.includes('/usr/bin/node is not executable'));
    expect(complaints).toEqual([]);
    expect(status === 0 || `${stdout}${stderr}`.includes('/usr/bin/node')).toBe(true);
  });

  it('has an exposure level of at most 2 by systemd-analyze security', () => {
    const { stdout } = spawnSync(analyze, ['security', '--offline=true', '--no-pager', path], {
      encoding: 'utf8',
    });
    const exposure = Number(/exposure level for evalwatch.service: ([\d.]+)/.exec(stdout)?.[1]);
    expect(exposure).toBeLessThanOrEqual(MOST_EXPOSURE);
  });
});

it('the systemd unit runs dist/main.js, reloads by SIGHUP, and gives a stop more than 10 s', () => {
  expect(Number(setting('TimeoutStopSec'))).toBeGreaterThan(10);
  expect(setting('ExecReload')).toBe('/bin/kill -HUP $MAINPID');
  expect(setting('ExecStart')).toMatch(/^\/usr\/bin\/node \S+ \S+\/dist\/main\.js run --config /);
});

it('the systemd unit restarts a daemon that does not ping, and accepts messages of systemd-notify', () => {
  expect(setting('Type')).toBe('notify');
  // Without privileges, systemd-notify sends in its own name.
  expect(setting('NotifyAccess')).toBe('all');
  expect(setting('WatchdogSec')).toBe('90');
  expect(setting('WatchdogSignal')).toBe('SIGKILL');
  expect(setting('LimitCORE')).toBe('0');
  expect(setting('Restart')).toBe('on-failure');
  // A start may upgrade the store.
  expect(setting('TimeoutStartSec')).toBe('30min');
});

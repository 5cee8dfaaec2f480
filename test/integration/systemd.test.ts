import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, vi } from 'vitest';
import { debianTool } from '../support/debian-tool.ts';
import {
  ON_REQUEST,
  PATIENCE,
  pollNow,
  startDaemon,
  UNHURRIED,
  workspace,
} from '../support/evalwatch.ts';
import { startAlpha } from '../support/service.ts';

const notifier = debianTool('systemd', 'systemd-notify') ?? '';
const python = debianTool('python3-minimal', 'python3') ?? '';
const isPossible = notifier !== '' && python !== '';
if (!isPossible) console.warn('no systemd-notify or no python3 here: nothing was notified');

/** Stands in for systemd. Node has no datagrams on unix sockets. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("bound", flush=True)
while True: print(receiver.recv(4096).decode(), flush=True)`;

/** Opens a socket in the place of systemd's; `await using` closes it. */
async function listenAt(path: string) {
  const child = spawn(python, ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  await vi.waitFor(() => expect(lines).toEqual(['bound']), PATIENCE);
  /** Leaves out the barriers by which systemd-notify waits until its message is read. */
  const messages = () => lines.slice(1).filter((line) => line !== 'BARRIER=1');
  const pings = () => messages().filter((message) => message === 'WATCHDOG=1').length;
  return {
    messages,
    pings,
    nextPing: async () => {
      const before = pings();
      await vi.waitFor(() => expect(pings()).toBeGreaterThan(before), PATIENCE);
    },
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await ended;
    },
  };
}

describe.skipIf(!isPossible)('a daemon run by systemd', UNHURRIED, () => {
  it('sends READY=1 once its port answers, watchdog pings, and STOPPING=1 at a stop', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    const socket = join(place.directory, 'notify');
    await using systemd = await listenAt(socket);
    await using daemon = startDaemon(place, {
      env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '300000', WATCHDOG_PID: '1' },
    });
    await vi.waitFor(() => expect(systemd.messages()).toContain('READY=1'), PATIENCE);
    // The URL is logged before READY=1 is sent.
    const ready = await fetch(`${await daemon.url()}/-/ready`);
    expect(ready.status).toBe(200);
    await systemd.nextPing();
    await systemd.nextPing();
    expect(await daemon.stop()).toMatchObject({ code: 0, stderr: '' });

    const messages = systemd.messages();
    expect(messages.indexOf('READY=1')).toBe(0);
    expect(messages.indexOf('STOPPING=1')).toBe(messages.length - 1);
    expect(new Set(messages)).toEqual(new Set(['READY=1', 'WATCHDOG=1', 'STOPPING=1']));
  });

  it('sends no watchdog pings while its stdout is not read', async () => {
    await using service = await startAlpha();
    await using place = await workspace(service.url);
    const socket = join(place.directory, 'notify');
    await using systemd = await listenAt(socket);
    await using daemon = startDaemon(place, {
      env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '300000' },
    });
    const url = await daemon.url();
    await daemon.line('project.baseline');
    await systemd.nextPing();
    daemon.process.stdout?.pause();
    // More lines than the pipe and Node's buffer hold.
    const ids = Array.from({ length: 3000 }, (_, number) => `prompt-${number}`);
    service.set(Object.fromEntries(ids.map((id) => [id, 'PENDING'])));
    // Twenty pings would be due in this time. One that had begun still arrives.
    await vi.waitFor(async () => {
      const before = systemd.pings();
      const signal = AbortSignal.timeout(2000);
      expect(await fetch(`${url}/-/healthy`, { signal }).catch(() => 'no answer')).toBe(
        'no answer',
      );
      expect(systemd.pings()).toBe(before);
    }, PATIENCE);

    daemon.process.stdout?.resume();
    await systemd.nextPing();
    expect(await daemon.stop()).toMatchObject({ code: 0 });
  });
});

it('a daemon without systemd-notify keeps running, after one warning', UNHURRIED, async () => {
  await using service = await startAlpha();
  await using place = await workspace(service.url, ON_REQUEST);
  await using daemon = startDaemon(place, {
    env: { NOTIFY_SOCKET: '/nowhere', WATCHDOG_USEC: '30000', PATH: place.directory },
  });
  expect(await daemon.line('systemd.notify_failed', { level: 'warn' })).toMatchObject({
    err: { message: 'spawn systemd-notify ENOENT', code: 'ENOENT' },
  });
  const url = await daemon.url();
  await daemon.line('project.baseline');
  service.set({ p1: 'PENDING' });
  await vi.waitFor(async () => {
    await pollNow(url);
    expect(daemon.of('prompt.transition')).toHaveLength(1);
  }, PATIENCE);
  expect(await daemon.stop()).toMatchObject({ code: 0 });
  expect(daemon.of('systemd.notify_failed')).toHaveLength(1);
});

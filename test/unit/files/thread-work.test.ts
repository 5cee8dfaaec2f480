import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it, vi } from 'vitest';
import { queueFileWork, hasPendingWork } from '../../../src/files/thread-work.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** Speed of the module's timers relative to real time. */
let speed = 1;

/** Passes the global timers to the module under test, because fake timers do not replace those of node:timers. */
vi.mock(import('node:timers'), async (original) => ({
  ...(await original()),
  setInterval: ((run: () => void, ms: number) =>
    setInterval(run, ms / speed)) as typeof setInterval,
  clearInterval: (timer) => clearInterval(timer),
}));

afterEach(() => {
  vi.useRealTimers();
  speed = 1;
});

it('file work runs one at a time, even if some fails', async () => {
  const order: number[] = [];
  const step = (number: number) => async () => {
    order.push(number);
    await Promise.resolve();
    order.push(number);
    if (number === 2) throw new Error('second');
    return number;
  };
  const all = await Promise.allSettled([1, 2, 3].map((number) => queueFileWork(step(number))));
  expect(order).toEqual([1, 1, 2, 2, 3, 3]);
  expect(all).toMatchObject([{ value: 1 }, { reason: { message: 'second' } }, { value: 3 }]);
  expect(hasPendingWork()).toBe(false);
});

it('hanging work and work behind it are given up after 5 s, and further work at once', async () => {
  vi.useFakeTimers();
  const { promise: hanging, resolve: letGo } = Promise.withResolvers<string>();
  const waiting = vi.fn<() => Promise<string>>(async () => 'waited');
  const onResults = vi.fn<(results: unknown) => void>();
  void Promise.all([queueFileWork(() => hanging), queueFileWork(waiting)]).then(onResults);
  await vi.advanceTimersByTimeAsync(4999);
  expect(onResults).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(onResults).toHaveBeenCalledWith([undefined, undefined]);
  expect(await queueFileWork(waiting)).toBeUndefined();
  expect(hasPendingWork()).toBe(true);

  letGo('late');
  await vi.waitUntil(() => !hasPendingWork(), PATIENCE);
  expect(waiting).not.toHaveBeenCalled();
  expect(await queueFileWork(waiting)).toBe('waited');
});

it('file work that ends while the process is blocked for 6 s counts as in time', async () => {
  speed = 20;
  const file = queueFileWork(() => readFile(import.meta.filename, 'utf8'));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6000 / speed);
  expect(await file).toContain('stood still');
});

it.each([
  ['in queued file work', (pipe: string) => `void queueFileWork(() => fs.promises.open(${pipe}));`],
  ['outside the queue', (pipe: string) => `void fs.promises.open(${pipe});`],
])('exit ends a process although a thread of its pool hangs, %s', async (_, work) => {
  await using directory = await temporaryDirectory();
  const pipe = join(directory.path, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const source = JSON.stringify(join(import.meta.dirname, '../../../src/files/thread-work.ts'));
  const script = `
    const { exit, queueFileWork } = await import(${source});
    ${work(JSON.stringify(pipe))}
    process.on('exit', () => fs.writeSync(1, 'bye'));
    setTimeout(() => exit(3), 100);
  `;
  const child = spawn(process.execPath, ['--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [said, end] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect(end).toEqual([3, null]);
    expect(said).toBe('bye');
  } finally {
    child.kill('SIGKILL');
  }
});

import { afterEach, expect, it, vi } from 'vitest';
import { startUnlessStopped } from '../../../src/cli/start-unless-stopped.ts';
import { exit } from '../../../src/files/thread-work.ts';

vi.mock('../../../src/files/thread-work.ts', () => ({ exit: vi.fn<(code: number) => void>() }));
afterEach(() => {
  vi.useRealTimers();
  vi.clearAllMocks();
});

it('resolves to what was started, and a later stop is none of its business', async () => {
  vi.useFakeTimers();
  const stop = Promise.withResolvers<void>();
  expect(await startUnlessStopped(async () => 'started', stop.promise)).toBe('started');
  stop.resolve();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(exit).not.toHaveBeenCalled();
});

it('resolves to nothing once a start that is stopped has come to its next step', async () => {
  const stop = Promise.withResolvers<void>();
  const step = Promise.withResolvers<void>();
  const started = startUnlessStopped(async (signal) => {
    await step.promise;
    signal.throwIfAborted();
    return 'started';
  }, stop.promise);
  stop.resolve();
  await stop.promise;
  step.resolve();
  expect(await started).toBeUndefined();
  expect(exit).not.toHaveBeenCalled();
});

it('passes on why a start failed, stopped or not', async () => {
  const failing = () => Promise.reject(new Error('no store'));
  await expect(startUnlessStopped(failing, new Promise(() => {}))).rejects.toThrow('no store');
  await expect(startUnlessStopped(failing, Promise.resolve())).rejects.toThrow('no store');
});

it('ends the process after 2 s if the start hangs', async () => {
  vi.useFakeTimers();
  void startUnlessStopped(() => new Promise(() => {}), Promise.resolve());
  await vi.advanceTimersByTimeAsync(0);
  await vi.advanceTimersByTimeAsync(1999);
  expect(exit).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(exit).toHaveBeenCalledWith(0);
});

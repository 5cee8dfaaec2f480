import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { startUnlessStopped } from '../../../src/cli/commands/run.ts';

const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
afterAll(() => exit.mockRestore());
afterEach(() => {
  vi.useRealTimers();
  vi.clearAllMocks();
});

it('startUnlessStopped resolves to the result of the start and ignores a later stop', async () => {
  vi.useFakeTimers();
  const stop = Promise.withResolvers<void>();
  expect(await startUnlessStopped(async () => 'started', stop.promise)).toBe('started');
  stop.resolve();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(exit).not.toHaveBeenCalled();
});

it('startUnlessStopped resolves to undefined once a stopped start observes its abort signal', async () => {
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

it('startUnlessStopped rejects with the error of the start, stopped or not', async () => {
  const failing = () => Promise.reject(new Error('no store'));
  await expect(startUnlessStopped(failing, new Promise(() => {}))).rejects.toThrow('no store');
  await expect(startUnlessStopped(failing, Promise.resolve())).rejects.toThrow('no store');
});

it('startUnlessStopped exits the process with 0 if the start does not end 2 s after the stop', async () => {
  vi.useFakeTimers();
  void startUnlessStopped(() => new Promise(() => {}), Promise.resolve());
  await vi.advanceTimersByTimeAsync(0);
  await vi.advanceTimersByTimeAsync(1999);
  expect(exit).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(exit).toHaveBeenCalledWith(0);
});

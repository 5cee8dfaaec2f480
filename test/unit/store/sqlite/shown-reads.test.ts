import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../../src/app/clock.ts';
import { StoreError } from '../../../../src/monitor/errors.ts';
import type { ReadThread, StoreThread } from '../../../../src/store/sqlite/thread/thread-client.ts';
import { createShownReads } from '../../../../src/store/sqlite/thread/shown-reads.ts';

const CALL: { readonly method: 'projects'; readonly args: [] } = { method: 'projects', args: [] };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Sets up reads that return the name of their thread. */
function setUp(assertInPlace: () => Promise<void> = async () => {}) {
  const answered = (by: string) => (call: { readonly method: string }) =>
    call.method === 'assertInPlace' ? assertInPlace() : Promise.resolve([by]);
  const close = vi.fn<() => Promise<void>>(async () => {});
  const second: ReadThread = { read: answered('second') as ReadThread['read'], close };
  const start = vi.fn<() => Promise<ReadThread>>(async () => second);
  const thread = { read: answered('first') as StoreThread['read'] };
  return { shown: createShownReads({ clock: systemClock, thread, start }), start, close };
}

it('a second thread serves reads during large commits and for 30 s after them', async () => {
  const { shown, start, close } = setUp();
  expect(await shown.read(CALL)).toEqual(['first']);
  const done = Promise.withResolvers<void>();
  const first = shown.duringCommit(1001, () => done.promise);
  expect(await shown.duringCommit(1001, () => shown.read(CALL))).toEqual(['second']);
  vi.advanceTimersByTime(60_000);
  expect(await shown.read(CALL)).toEqual(['second']);
  done.resolve();
  await first;
  vi.advanceTimersByTime(29_000);
  await shown.duringCommit(1001, async () => {});
  vi.advanceTimersByTime(29_000);
  expect(await shown.read(CALL)).toEqual(['second']);
  expect(start).toHaveBeenCalledTimes(1);
  expect(close).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1000);
  expect(close).toHaveBeenCalledTimes(1);
  expect(await shown.read(CALL)).toEqual(['first']);
});

it('a second thread that fails to start is started again for the next large commit', async () => {
  const { shown, start } = setUp();
  start.mockRejectedValueOnce(new StoreError('io', 'too many open files'));
  expect(await shown.duringCommit(1001, () => shown.read(CALL))).toEqual(['first']);
  expect(await shown.duringCommit(1001, () => shown.read(CALL))).toEqual(['second']);
});

it('a second thread that opened another file is closed and not used', async () => {
  const { shown, close } = setUp(() => Promise.reject(new StoreError('replaced', 'another file')));
  expect(await shown.duringCommit(1001, () => shown.read(CALL))).toEqual(['first']);
  expect(close).toHaveBeenCalledTimes(1);
});

it('a second thread is not started for a commit of 1000 rows', async () => {
  const { shown, start } = setUp();
  expect(await shown.duringCommit(1000, () => shown.read(CALL))).toEqual(['first']);
  expect(start).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

it('close ends the second thread', async () => {
  const { shown, close } = setUp();
  await shown.duringCommit(1001, async () => {});
  await shown.close();
  expect(close).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

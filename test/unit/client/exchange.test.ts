import { gzipSync } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { exchange, type Get } from '../../../src/client/exchange.ts';

const CHUNKS_PER_TURN = 8192;
const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));
const chunk = Buffer.alloc(16, ' ');

/** Starts an exchange over a mock connection that has brought the header of an answer. */
function setUp(
  options: Pick<Partial<Get>, 'timeoutMs' | 'onPiece'> = {},
  headers: Record<string, string> = {},
) {
  const ending = new AbortController();
  const controller = { pause: vi.fn<() => void>(), resume: vi.fn<() => void>(), abort: () => {} };
  const connection = controller as unknown as Dispatcher.DispatchController;
  let handler: Dispatcher.DispatchHandler = {};
  const dispatch: Dispatcher['dispatch'] = (_, given) => {
    handler = given;
    return true;
  };
  const over = exchange(
    { dispatch },
    {
      clock: systemClock,
      origin: 'http://127.0.0.1',
      path: '/',
      headers: {},
      timeoutMs: 600_000,
      maxBytes: 64 * 1024 * 1024,
      scrub: (text) => text,
      onPiece: () => undefined,
      onSent: () => {},
      signal: ending.signal,
      ...options,
    },
  );
  handler.onRequestStart?.(connection, {});
  handler.onResponseStart?.(connection, 200, headers);
  return {
    ...controller,
    over,
    receive: (count: number, bytes = chunk) => {
      for (let n = 0; n < count; n += 1) handler.onResponseData?.(connection, bytes);
    },
    [Symbol.asyncDispose]: async () => {
      ending.abort(new Error('the test is over'));
      await over.catch(() => {});
    },
  };
}

it('a connection is paused after each 8,192 chunks and resumed in the next turn of the event loop', async () => {
  await using given = setUp();
  given.receive(CHUNKS_PER_TURN - 1);
  expect(given.pause).not.toHaveBeenCalled();
  given.receive(1);
  expect(given.pause).toHaveBeenCalledOnce();
  expect(given.resume).not.toHaveBeenCalled();
  await nextTurn();
  expect(given.resume).toHaveBeenCalledOnce();
  given.receive(CHUNKS_PER_TURN);
  expect(given.pause).toHaveBeenCalledTimes(2);
});

it('a connection is paused while the decoder is full and resumed when it has room', async () => {
  const held = Promise.withResolvers<void>();
  await using given = setUp({ onPiece: () => held.promise }, { 'content-encoding': 'gzip' });
  given.receive(1, gzipSync(Buffer.alloc(1024 * 1024), { level: 0 }));
  await vi.waitFor(() => expect(given.pause).toHaveBeenCalledTimes(2));
  await nextTurn();
  expect(given.resume).not.toHaveBeenCalled();
  held.resolve();
  await vi.waitFor(() => expect(given.resume).toHaveBeenCalledOnce());
});

it('a connection is resumed only after the last of several promises', async () => {
  const held = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let pieces = 0;
  await using given = setUp({ onPiece: () => held[pieces++]?.promise });
  given.receive(2);
  held[0]?.resolve();
  await nextTurn();
  expect(given.resume).not.toHaveBeenCalled();
  held[1]?.resolve();
  await nextTurn();
  expect(given.resume).toHaveBeenCalledOnce();
});

it('an empty chunk, with which undici resumes a connection, is no piece', async () => {
  const onPiece = vi.fn<() => undefined>();
  await using given = setUp({ onPiece });
  given.receive(20_000, Buffer.of());
  expect(onPiece).not.toHaveBeenCalled();
  expect(given.pause).not.toHaveBeenCalled();
});

it('the timeout does not count the time for which onPiece holds up the body', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const held = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let pieces = 0;
  await using given = setUp({ timeoutMs: 1000, onPiece: () => held[pieces++]?.promise });
  const settled = vi.fn<() => void>();
  void given.over.finally(settled);
  await vi.advanceTimersByTimeAsync(600);
  given.receive(2);
  held[0]?.resolve();
  await vi.advanceTimersByTimeAsync(100_000);
  expect(settled).not.toHaveBeenCalled();
  held[1]?.resolve();
  await vi.advanceTimersByTimeAsync(399);
  expect(settled).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect((await given.over).body).toMatchObject({ reason: 'timeout' });
  expect((await given.over).durationMs).toBe(1000);
});

it('an exchange that was aborted sets no timer when a held piece is let go', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const held = Promise.withResolvers<void>();
  {
    await using given = setUp({ onPiece: () => held.promise });
    given.receive(1);
  }
  held.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
});

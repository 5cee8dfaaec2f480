import type { Dispatcher } from 'undici';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { createBodyReader, type BodyOptions } from '../../../src/client/sending/body.ts';
import { exchange, type ExchangeOptions } from '../../../src/client/sending/exchange.ts';

vi.mock(import('../../../src/client/sending/body.ts'));

const MAX_CHUNKS_PER_TURN = 16_384;
const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));

/** Starts an exchange with a mock connection and mock decoders. */
function setUp(options: Pick<Partial<ExchangeOptions>, 'timeoutMs' | 'onPiece'> = {}) {
  const ending = new AbortController();
  const controller = { pause: vi.fn<() => void>(), resume: vi.fn<() => void>(), abort: () => {} };
  const connection = controller as unknown as Dispatcher.DispatchController;
  const take: BodyOptions['onPiece'] = () => undefined;
  const decoders = { hasRoom: true, drain: () => {}, take };
  vi.mocked(createBodyReader).mockImplementation(({ onDrain, onPiece }: BodyOptions) => {
    decoders.drain = onDrain;
    decoders.take = onPiece;
    return { write: () => decoders.hasRoom, end: () => {}, destroy: () => {}, bytes: () => 0 };
  });
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
      maxBytes: 1000,
      scrub: (text) => text,
      onSent: () => {},
      signal: ending.signal,
      ...options,
    },
  );
  handler.onRequestStart?.(connection, {});
  handler.onResponseStart?.(connection, 200, {});
  return {
    ...controller,
    decoders,
    over,
    receive: (chunks: number) => {
      for (let n = 0; n < chunks; n += 1) handler.onResponseData?.(connection, Buffer.of());
    },
    [Symbol.asyncDispose]: async () => {
      ending.abort(new Error('the test is over'));
      await over.catch(() => {});
    },
  };
}

it('a connection is paused after 16,384 chunks in one event loop turn and resumed in the next', async () => {
  await using given = setUp();
  given.receive(MAX_CHUNKS_PER_TURN - 1);
  expect(given.pause).not.toHaveBeenCalled();
  given.receive(1000);
  expect(given.pause).toHaveBeenCalledOnce();
  expect(given.resume).not.toHaveBeenCalled();
  await nextTurn();
  expect(given.resume).toHaveBeenCalledOnce();

  // The next turn has as many.
  given.receive(MAX_CHUNKS_PER_TURN - 1);
  expect(given.pause).toHaveBeenCalledOnce();
  given.receive(1);
  expect(given.pause).toHaveBeenCalledTimes(2);
});

it('a connection is paused while the decoders are full and resumed when they drain', async () => {
  await using given = setUp();
  given.decoders.hasRoom = false;
  given.receive(1);
  expect(given.pause).toHaveBeenCalledOnce();
  await nextTurn();
  expect(given.resume).not.toHaveBeenCalled();
  given.decoders.drain();
  expect(given.resume).toHaveBeenCalledOnce();
});

it('a drain does not resume a connection that has reached the chunk limit of the turn', async () => {
  await using given = setUp();
  given.receive(MAX_CHUNKS_PER_TURN - 1);
  given.decoders.hasRoom = false;
  given.receive(1);
  given.decoders.drain();
  expect(given.resume).not.toHaveBeenCalled();
  await nextTurn();
  expect(given.resume).toHaveBeenCalledOnce();
});

it('the timeout does not count the time for which onPiece holds up the body', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const held = Promise.withResolvers<void>();
  await using given = setUp({ timeoutMs: 1000, onPiece: () => held.promise });
  const settled = vi.fn<() => void>();
  void given.over.finally(settled);
  await vi.advanceTimersByTimeAsync(600);
  const room = given.decoders.take(Buffer.of());
  await vi.advanceTimersByTimeAsync(100_000);
  expect(settled).not.toHaveBeenCalled();
  held.resolve();
  await room;
  await vi.advanceTimersByTimeAsync(399);
  expect(settled).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect((await given.over).body).toMatchObject({ reason: 'timeout' });
});
